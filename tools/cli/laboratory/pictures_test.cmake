# What -o leaves in FOLDER, by the command VIA.
file(REMOVE_RECURSE ${FOLDER})

function(run_via)
    execute_process(COMMAND ${VIA} lab ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE text
                    ERROR_VARIABLE text)
    if(NOT code EQUAL 0)
        message(FATAL_ERROR "via lab ${ARGN}: ${code}: ${text}")
    endif()
endfunction()

# Each of `parts` stands in that file.
function(expect file)
    file(READ ${FOLDER}/${file} text)
    foreach(part ${ARGN})
        string(FIND "${text}" "${part}" at)
        if(at EQUAL -1)
            message(FATAL_ERROR "there is no '${part}' in ${file}")
        endif()
    endforeach()
endfunction()

run_via(run firmvia latency --sizes 4,128,1K -o ${FOLDER}/run)
expect(run/latency.svg "<svg" "firmvia: latency")
expect(run/latency.tsv "bytes\tfirmvia\n4\t18." "\n1024\t")
expect(run/parts.svg "<svg" "system call")
expect(run/parts.tsv "1024 B\t")

run_via(explain gnic2 --size 1 -o ${FOLDER}/explain)
expect(explain/timeline.svg "host 1 NIC writes" "interrupt: ")
expect(explain/timeline.tsv "host 0 processor\tsystem call\tfast trap\t1")

run_via(compare firmvia berkeley1 --over vis -o ${FOLDER}/compare)
expect(compare/compare.svg "<svg" "berkeley1")
expect(compare/compare.tsv "VIs\tfirmvia\tberkeley1\n1\t")

run_via(reproduce berkeley -o ${FOLDER}/reproduce)
foreach(machine berkeley1 berkeley2)
    expect(reproduce/${machine}-rows.txt "reproduced" "Calibrated")
    foreach(picture latency bandwidth parts timeline)
        expect(reproduce/${machine}-${picture}.svg "<svg")
    endforeach()
endforeach()

# A folder that cannot be.
file(WRITE ${FOLDER}/file "")
execute_process(COMMAND ${VIA} lab explain firmvia --size 4 -o ${FOLDER}/file/below
                RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE text)
if(NOT code EQUAL 1 OR NOT text MATCHES "file/below .mkdir.: ")
    message(FATAL_ERROR "via lab explain into a file: ${code}: ${text}")
endif()
