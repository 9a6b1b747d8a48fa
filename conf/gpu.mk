# Tests on a real GPU. The report is kept in the repository: what ran, on what, and the hash of the sources that it is
# about.
PART ?= unit
GPU_REPORT := tests/gpu-report.txt

.PHONY: check-gpu gpu-report-status
check-gpu: all cuda
	@$(MAKE) --no-print-directory $(if $(filter conformance,$(PART)),conformance-bundle,$(UNIT_BIN) $(MAT_BIN) $(RANKS_BIN))
	@CONFORMANCE_BUNDLE="$${CONFORMANCE_BUNDLE:-$(CONFORMANCE_BUNDLE)}" tests/check-gpu $(PART) $(BUILD)/tests $(CURDIR)/$(CUDA_LIB) $(CURDIR)/$(BUILD)/lib/$(PLUGIN) $(GPU_REPORT)

gpu-report-status:
	@tests/gpu-report-status $(GPU_REPORT)

## make check-gpu       tests on a real GPU, PART=unit|sanitizer|cards|conformance|faults; appends to
##                      tests/gpu-report.txt
## make gpu-report-status  says whether the last run of each part in tests/gpu-report.txt is about these sources, or
##                         what differs
