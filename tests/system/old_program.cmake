# Runs the old program as server and client at once: a pipeline of processes is just that.
# cmake -DPROGRAM=... -DNIC=shm [-DCLIENTS=2] -P old_program.cmake
# cmake -DPROGRAM=... -DVIA=... -P old_program.cmake     as two hosts, by names of 1999
string(RANDOM LENGTH 16 name)  # no other run may answer
if(DEFINED NIC)
    cmake_host_system_information(RESULT host QUERY HOSTNAME)
    set(server ${PROGRAM} server ${NIC} ${host} ${name})
    set(client ${PROGRAM} client ${NIC} ${host} ${name})
else()
    # The server's host must be known before the client asks for it: a program that spins does so
    # as long as nobody listens there, not as long as there is no such host.
    execute_process(COMMAND ${VIA} info shm:old-right OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
    set(run ${CMAKE_COMMAND} -E env)
    set(server ${run} "OPENVIA_NICS=/dev/via0=shm:old-right"
               ${PROGRAM} server /dev/via0 nobody ${name})
    set(client ${run} "OPENVIA_NICS=/dev/via0=shm:old-left" "OPENVIA_HOSTS=node1=shm:old-right"
               ${PROGRAM} client /dev/via0 node1 ${name})
endif()
set(commands COMMAND ${server} COMMAND ${client})
set(expected "0;0")
if(CLIENTS EQUAL 2)
    list(APPEND commands COMMAND ${client})
    list(APPEND expected 0)
endif()
execute_process(${commands} RESULTS_VARIABLE results TIMEOUT 100)
if(NOT results STREQUAL expected)
    message(FATAL_ERROR "server and clients ended with: ${results}")
endif()
