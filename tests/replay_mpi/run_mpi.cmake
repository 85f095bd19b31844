# Runs PROGRAM under MPIRUN with RANKS ranks and checks exit code and output: EXPECT is "code;text".
set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
set(ENV{OMPI_MCA_rmaps_base_oversubscribe} 1)
# MPI libraries keep memory until the process ends.
set(ENV{ASAN_OPTIONS} detect_leaks=0)
set(ENV{OMPI_MCA_btl_vader_single_copy_mechanism} none)
list(GET EXPECT 0 code)
list(GET EXPECT 1 text)
execute_process(COMMAND ${MPIRUN} --timeout 280 -n ${RANKS} ${PROGRAM} ${ARGUMENTS} RESULT_VARIABLE got OUTPUT_VARIABLE output ERROR_VARIABLE errors)
string(FIND "${output}${errors}" "${text}" found)
if(NOT got EQUAL code OR found EQUAL -1)
  message(FATAL_ERROR "expected exit ${code} and '${text}', got exit ${got} and:\n${output}${errors}")
endif()
