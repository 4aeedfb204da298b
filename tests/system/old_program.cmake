# Runs the old program as server and client at once: a pipeline of processes is just that.
# cmake -DPROGRAM=... -DNIC=shm -P old_program.cmake
cmake_host_system_information(RESULT host QUERY HOSTNAME)
string(RANDOM LENGTH 16 name)  # no other run may answer
execute_process(COMMAND ${PROGRAM} server ${NIC} ${host} ${name}
                COMMAND ${PROGRAM} client ${NIC} ${host} ${name}
                RESULTS_VARIABLE results TIMEOUT 100)
if(NOT results STREQUAL "0;0")
    message(FATAL_ERROR "server and client ended with: ${results}")
endif()
