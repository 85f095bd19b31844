# Runs PROGRAM under MPIRUN with RANKS ranks and checks exit code and output: EXPECT is "code;text". Nothing may be left behind: no process, no
# shared memory.
set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
set(ENV{OMPI_MCA_rmaps_base_oversubscribe} 1)
# MPI libraries keep memory until the process ends.
set(ENV{ASAN_OPTIONS} detect_leaks=0)
set(ENV{OMPI_MCA_btl_vader_single_copy_mechanism} none)
# Open MPI asks for the machine's name; where no name server answers each start would wait ten seconds for it.
set(ENV{RES_OPTIONS} "timeout:1 attempts:1")
list(GET EXPECT 0 code)
list(GET EXPECT 1 text)
string(TIMESTAMP now "%s")
string(RANDOM LENGTH 8 word)
set(token mpi_${now}_${word})
set(stamp ${CMAKE_CURRENT_BINARY_DIR}/${token}.stamp)
file(TOUCH ${stamp})
execute_process(COMMAND ${CMAKE_COMMAND} -E env MESHPLAN_TEST_TOKEN=${token} ${MPIRUN} --timeout 280 -n ${RANKS} ${PROGRAM} ${ARGUMENTS}
                RESULT_VARIABLE got OUTPUT_VARIABLE output ERROR_VARIABLE errors)
execute_process(COMMAND ${LEFTOVERS} ${token} ${stamp} OUTPUT_VARIABLE left)
file(REMOVE ${stamp})
string(FIND "${output}${errors}" "${text}" found)
if(NOT got EQUAL code OR found EQUAL -1)
  message(FATAL_ERROR "expected exit ${code} and '${text}', got exit ${got} and:\n${output}${errors}")
endif()
if(NOT left STREQUAL "")
  message(FATAL_ERROR "left behind:\n${left}")
endif()
