#!/bin/sh
# The plugin as PETSc loads it: what -help shows, what is refused and how, and that nothing is left allocated.
#
#   tests/plugin/run.sh BUILD PLUGIN [EMULATED]       BUILD/tests holds the programs, BUILD/other plugins that must not
#                                                     load, EMULATED is the emulated device's library
set -u
build=$1 plugin=$2 emulated=${3:-}
mpiexec=${MPIEXEC:-mpiexec}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); printf 'FAILED: %s\n' "$1"; tail -n 25 "$tmp/out" | cut -c1-200 | sed 's/^/  | /'; }
coo=$build/tests/assembly_coordinates
# PETSc's own account of memory: nothing is left at the end, no block is written beyond its end; the program, processes
clean() {
  local try
  for try in 1 2; do
    if timeout 300 "$mpiexec" -n $2 "$build/tests/$1" -dll_append "$plugin" -malloc_debug -malloc_dump > "$tmp/out" 2>&1 && ! grep -qE '^\[ *[0-9]+\] *[0-9]+ bytes|Memory|corrupt' "$tmp/out"; then ok; return; fi
    # on a loaded machine Open MPI says now and then that a process which ended well did not
    grep -q 'exiting improperly' "$tmp/out" || break
  done
  bad "$1 on $2 processes is clean with -malloc_dump"
}
# each allocation looks at all blocks: this one takes half a minute of a processor
if [ -n "${TEST_MORE:-}" ]; then clean type_operations 2; fi
if [ "${TEST_MORE:-}" = only ]; then echo "$passed passed, $failed failed, $skipped skipped"; exit $((failed > 0)); fi

# -help: every option of the list, and the methods' names
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 3\n' > "$tmp/small.mtx"
timeout 60 "$build/examples/solve" -dll_append "$plugin" -mat_type aijhybridgpu -help -A "$tmp/small.mtx" > "$tmp/out" 2>&1
for o in $(sed -n 's/^| `\(-mat_aijhybridgpu_[a-z_]*\)`.*/\1/p' docs/options.md) $(sed -n 's/^| `\([a-z_]*\)`.*/\1/p' docs/tuning.md); do
  if grep -q -e "^ *$o[ :]" "$tmp/out"; then ok; else bad "-help shows $o (docs/options.md, docs/tuning.md)"; fi
done
for m in binned rowmerge segsum csr; do
  if grep -e '-mat_aijhybridgpu_sp' "$tmp/out" | grep -q "$m"; then ok; else bad "-help names the method $m"; fi
done

refuses() { # what it is, what the message must hold; the command
  what=$1 text=$2
  shift 2
  timeout 60 "$@" > "$tmp/out" 2>&1
  rc=$?
  if [ $rc != 0 ] && [ $rc -lt 124 ] && grep -q -e "$text" "$tmp/out"; then ok; else bad "$what is refused (exit $rc, expected: $text)"; fi
}
run="$coo -dll_append $plugin"
refuses "an unknown product method" 'Unknown method "nonesuch" for -mat_aijhybridgpu_spgemm: it is one of auto, .*binned' $run -mat_aijhybridgpu_spgemm nonesuch
refuses "an unknown SpMV method" 'Unknown method "nonesuch" for -mat_aijhybridgpu_spmv: it is one of auto, .*segsum' $run -mat_aijhybridgpu_spmv nonesuch
refuses "an unknown backend" 'nonesuch' $run -mat_aijhybridgpu_backend nonesuch
# these are read when the device is needed
run="$build/tests/mat_products -dll_append $plugin"
refuses "a word for a number" 'device_min takes a number of nonzeros, 0 or more, not many: ' $run -mat_aijhybridgpu_device_min many
refuses "a word for a share" 'tuning managed_limit takes a share .*, 0 to 1, not half: ' $run -mat_aijhybridgpu_managed_limit half
refuses "an unknown memory mode" 'memory takes one of managed mirror, not nonesuch: ' $run -mat_aijhybridgpu_backend cuda -mat_aijhybridgpu_memory nonesuch
refuses "a share above 1" 'managed_limit takes .*, 0 to 1, not 7: ' $run -mat_aijhybridgpu_backend cuda -mat_aijhybridgpu_managed_limit 7
# the values of -mat_aijhybridgpu_tuning, and their old names
refuses "an unknown value's name" 'tuning knows no narow_min; the nearest name is narrow_min' $run -mat_aijhybridgpu_tuning plan_min=0,narow_min=3
refuses "a value that is an option" 'tuning memory: that is an option of its own, -mat_aijhybridgpu_memory' $run -mat_aijhybridgpu_tuning memory=mirror
refuses "a name without a value" 'takes name=value,name=value, not ahead' $run -mat_aijhybridgpu_tuning ahead
refuses "a share above 1, by its new name" 'tuning managed_limit takes .*, 0 to 1, not 7: ' $run -mat_aijhybridgpu_tuning plan_min=1,managed_limit=7
refuses "a number below the least" 'tuning hash_places takes -1 to 1000, not -2: ' $run -mat_aijhybridgpu_tuning hash_places=-2
refuses "a width of one" 'tuning rowmerge_width takes 0, or 2 to 32, not 1: ' $run -mat_aijhybridgpu_rowmerge_width 1
refuses "the last of two values" 'tuning hash_lists takes 0 to 64, not 65: ' $run -mat_aijhybridgpu_tuning hash_lists=3,hash_lists=65
refuses "the new name before the old one" 'tuning hash_lists takes 0 to 64, not 66: ' $run -mat_aijhybridgpu_hash_lists 3 -mat_aijhybridgpu_tuning hash_lists=66
rm -f "$tmp"/info*
if timeout 60 $run -mat_aijhybridgpu_hash_lists 3 -mat_aijhybridgpu_plan_min 9 -mat_aijhybridgpu_backend host -info "$tmp/info" > "$tmp/out" 2>&1 && [ "$(cat "$tmp"/info* | grep -c 'is now -mat_aijhybridgpu_tuning \(hash_lists=3\|plan_min=9\);')" = 2 ]; then ok; else bad "old names are taken, and -info says the new ones once"; fi
for b in auto cuda host; do
  refuses "a library that is named and is not there, $b" 'cuda_library /nonexistent.so: there is no such file' $run -mat_aijhybridgpu_backend $b -mat_aijhybridgpu_cuda_library /nonexistent.so
done

# options that look like the type's and are none: a line each, with the nearest name, and no word of those that are
small="$build/examples/solve -dll_append $plugin -A $tmp/small.mtx"
tells() { # what it is, the lines; options
  what=$1 lines=$2
  shift 2
  if timeout 60 $small "$@" > /dev/null 2> "$tmp/out" && [ "$(grep petsc-aijhybridgpu "$tmp/out")" = "$lines" ]; then ok; else bad "$what"; fi
}
unknown="petsc-aijhybridgpu: unknown option"
for type in aij aijhybridgpu; do
  tells "a mistyped name, $type" "$unknown -mat_aijhybridgpu_reprot; the nearest one is -mat_aijhybridgpu_report" -mat_type $type -mat_aijhybridgpu_reprot x.html
  tells "a mistyped beginning, $type" "$unknown -mat_aihjybridgpu_backend; the nearest one is -mat_aijhybridgpu_backend" -mat_type $type -mat_aihjybridgpu_backend host
  tells "a beginning that is too short, $type" "$unknown -mat_aijhybrid_backend; the nearest one is -mat_aijhybridgpu_backend" -mat_type $type -mat_aijhybrid_backend host
  tells "under a prefix, $type" "$unknown -fluid_mat_aijhybridgpu_bakend; the nearest one is -fluid_mat_aijhybridgpu_backend" -mat_type $type -fluid_mat_aijhybridgpu_bakend host
  tells "of the process, under a prefix, $type" "$unknown -fluid_mat_aijhybridgpu_memory; -mat_aijhybridgpu_memory belongs to the whole process and takes no prefix" -mat_type $type -fluid_mat_aijhybridgpu_memory mirror
  tells "known ones, used or not, and others' are not told, $type" "" -mat_type $type -mat_aijhybridgpu_backend host -fluid_mat_aijhybridgpu_backend host -mat_aijhybridgpu_segsum_threads 64 -mat_aijhybridgpu_memory mirror -mat_aijcusparse_nonesuch 1 -nonesuch
  tells "a mistyped value's name, $type" "$unknown -mat_aijhybridgpu_narow_min; the nearest one is -mat_aijhybridgpu_tuning narrow_min=..." -mat_type $type -mat_aijhybridgpu_narow_min 3
  tells "values are not told, $type" "" -mat_type $type -mat_aijhybridgpu_tuning narrow_min=3
  tells "nothing is told with -mat_aijhybridgpu_unknown_options 0, $type" "" -mat_type $type -mat_aijhybridgpu_reprot x.html -mat_aijhybridgpu_unknown_options 0
done

# a device that cannot be used or may not be: the host does the work and -info says why, unless the device was asked for
# by name
if [ -n "$emulated" ]; then
  run="$run -mat_aijhybridgpu_cuda_library $emulated -mat_aijhybridgpu_device_min 0"
  does() { # what it is, a pattern of operations on the device, what -info says; the environment and options
    what=$1 operations=$2 text=$3
    shift 3
    rm -f "$tmp/counts" "$tmp"/info*
    timeout 120 env $1 $run ${2:-} -mat_aijhybridgpu_view_counts "$tmp/counts" -info "$tmp/info" > "$tmp/out" 2>&1 && grep -q " device=$operations " "$tmp/counts" && grep -qh -e "$text" "$tmp"/info* && ok || { cat "$tmp/counts" >> "$tmp/out"; bad "$what"; }
  }
  does "a device that can be used is" '[1-9][0-9]*' 'Device library emulated in use' HYB_EMULATOR_DRIVER=99000
  does "without a driver, or with one that is too old, the host does all" 0 'No device is used: .*CUDA driver version is insufficient' HYB_EMULATOR_DRIVER=12040
  does "with -device_enable none the host does all" 0 'No device is used: devices are switched off by -device_enable none' HYB_EMULATOR_DRIVER=99000 "-device_enable none"
  refuses "a driver that is too old" 'was asked for, but .*CUDA driver version is insufficient' env HYB_EMULATOR_DRIVER=12040 $run -mat_aijhybridgpu_backend cuda
  refuses "the device together with -device_enable none" 'was asked for, but devices are switched off by -device_enable none' $run -mat_aijhybridgpu_backend cuda -device_enable none
else
  echo "SKIPPED: a driver that is too old, -device_enable none: the emulated device shows them, and there is none"
  skipped=$((skipped + 1))
fi
refuses "a plugin of another release" 'was built for PETSc 3.17 and cannot be loaded into PETSc 3' "$coo" -dll_append "$build/other/release/libaijhybridgpu.so"
refuses "a plugin that brings a second PETSc" 'two PETSc libraries in one process' "$coo" -dll_append "$build/other/second/libaijhybridgpu.so"
if timeout 100 env LD_PRELOAD="$build/other/libpetsc_tools.so" "$coo" -dll_append "$plugin" > "$tmp/out" 2>&1; then ok; else bad "a library whose name begins as PETSc's is no second PETSc"; fi
configuration() { # which, what it is, the message; what this PETSc has itself is no other one
  if [ -f "$build/other/$1/libaijhybridgpu.so" ]; then refuses "a plugin with $2" "$3" "$coo" -dll_append "$build/other/$1/libaijhybridgpu.so"
  else echo "SKIPPED: a plugin with $2: this PETSc has them"; skipped=$((skipped + 1)); fi
}
configuration int64 "64-bit integers" 'was built for a PETSc with 64-bit integers'
configuration complex "complex scalars" 'integers and complex scalars'

for pair in "type_operations 1" "mat_products 1" "mat_products 2" "assembly_coordinates 1" "assembly_coordinates 2"; do clean $pair; done

# which of GAMG's setups are ours, and why others are not, in one line each: edges of one direction, where one of seven
# setups forbids the transpose; switched off, which as many PCs of MATAIJ say too. PETSc before 3.21 has its own code
# for all.
gamg() { # what it is, options, ours, others, how often the reason is to be said, the reason
  rm -f "$tmp/counts" "$tmp"/info*
  timeout 300 "$mpiexec" -n 1 "$build/tests/gamg_problems" -dll_append "$plugin" -mat_aijhybridgpu_backend host -problem 5 $2 -mat_aijhybridgpu_view_counts "$tmp/counts" -info "$tmp/info" > "$tmp/out" 2>&1
  if grep -q " 1 skipped" "$tmp/out"; then skipped=$((skipped + 1))
  elif grep -q " gamg=$3 gamgleft=$4 " "$tmp/counts" && [ "$(cat "$tmp"/info* | grep -c -e "$6")" = "$5" ]; then ok
  else grep -h "PETSc's own" "$tmp"/info* >> "$tmp/out"; cat "$tmp/counts" >> "$tmp/out"; bad "$1"; fi
}
gamg "GAMG's setups are counted and one says why it is PETSc's" "" 6 1 1 "Level 0 and those below are PETSc's own: a pattern that is not symmetric"
gamg "GAMG's setups that are switched off are counted and say so" "-pc_gamg_aijhybridgpu 0" 0 7 14 "The setup is PETSc's own: -pc_gamg_aijhybridgpu is off"

# matrices that live until other finalizers than the plugin's destroy them, one before it and one after it; a second
# PetscInitialize() in the same process
for n in 1 2; do
  for device in '' ${emulated:+"-mat_aijhybridgpu_backend cuda -mat_aijhybridgpu_comm_after 0 -mat_aijhybridgpu_cuda_library $emulated"}; do
    for how in "-end finalizers" "-twice" "-twice -end finalizers"; do
      if HYB_EMULATOR_CARDS=2 timeout 100 "$mpiexec" -n $n "$build/tests/plugin/ending" -load "$plugin" -mat_type aijhybridgpu $device $how > "$tmp/out" 2>&1; then ok
      else bad "a program with $how, $n processes${device:+, on the emulated device}"; fi
    done
  done
done
# a process that dies while others multiply, and wait for it: mpiexec ends them
for device in "-mat_aijhybridgpu_backend host" ${emulated:+"-mat_aijhybridgpu_backend cuda -mat_aijhybridgpu_comm_after 0 -mat_aijhybridgpu_cuda_library $emulated"}; do
  HYB_EMULATOR_CARDS=2 timeout 60 "$mpiexec" -n 2 "$build/tests/plugin/ending" -dll_append "$plugin" -mat_type aijhybridgpu $device -end killed > "$tmp/out" 2>&1
  got=$?
  if [ $got != 0 ] && [ $got != 124 ] && grep -q -i 'signal 9\|killed' "$tmp/out"; then ok; else bad "a process is killed while another multiplies ($device): $got"; fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
