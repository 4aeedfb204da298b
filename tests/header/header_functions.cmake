# Compares the functions vipl.h declares with vipl_functions.def: the checks must know every one.
# cmake -DHEADER=... -DFUNCTIONS=... -P header_functions.cmake
cmake_minimum_required(VERSION 3.20)

# Comments hold semicolons and names too; only the start of a declaration counts.
file(STRINGS "${HEADER}" declarations REGEX "^(VIP_RETURN|VIP_PVOID|void) Vip")
file(STRINGS "${FUNCTIONS}" entries REGEX "^VIPL_FUNCTION")
set(declared "")
set(listed "")
foreach(line IN LISTS declarations)
    string(REGEX REPLACE "^[A-Za-z_]+ (Vip[A-Za-z0-9]+).*" "\\1" name "${line}")
    if(NOT name STREQUAL "")
        list(APPEND declared "${name}")
    endif()
endforeach()
foreach(line IN LISTS entries)
    string(REGEX REPLACE "^VIPL_FUNCTION(_OF.[A-Za-z_]+, |.)(Vip[A-Za-z0-9]+),.*" "\\2" name
           "${line}")
    list(APPEND listed "${name}")
endforeach()
list(LENGTH declared count)
if(NOT count EQUAL 43)
    message(SEND_ERROR "${HEADER} declares ${count} functions, VIPL 1.0 and its time have 43")
endif()
if(NOT "${declared}" STREQUAL "${listed}")
    message(SEND_ERROR "header: ${declared}\nlist:   ${listed}")
endif()
