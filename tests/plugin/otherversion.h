/* Included before everything else: the plugin's loading code as it would be, built for an older release */
#include <petscversion.h>
#undef PETSC_VERSION_MINOR
#define PETSC_VERSION_MINOR 17
