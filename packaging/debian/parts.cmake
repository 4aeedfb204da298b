# Run by cpack before it packs: adds to each package what Debian's policy wants of it.
foreach(component ${CPACK_COMPONENTS_ALL})
    string(TOUPPER ${component} upper)
    set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
    set(share ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share)
    file(COPY ${CMAKE_CURRENT_LIST_DIR}/changelog ${CMAKE_CURRENT_LIST_DIR}/copyright
         DESTINATION ${share}/doc/${package})
    file(READ ${CMAKE_CURRENT_LIST_DIR}/overrides overrides)
    if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/overrides-${component})
        file(READ ${CMAKE_CURRENT_LIST_DIR}/overrides-${component} own)
        string(APPEND overrides "${own}")
    endif()
    file(WRITE ${share}/lintian/overrides/${package} "${overrides}")
    file(GLOB pages ${share}/man/*/*)
    execute_process(COMMAND gzip -9n ${share}/doc/${package}/changelog ${pages}
                    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
