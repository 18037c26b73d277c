package task

import (
	"testing"

	"loam/mem"
	"loam/mem/memtest"
	"loam/task/family"
)

// The files of /proc include settings that do not depend on processes.
func TestMachineFiles(t *testing.T) {
	s := New(Config{Machine: &simulated{t: t, memory: memtest.NewMemory(8)}, CPUs: 2})
	files := s.MachineFiles(Figures{})
	for path, want := range map[string]string{"modules": "", "sys/kernel/ngroups_max": "65536\n"} {
		if text := files[path]; text == nil || text() != want {
			t.Errorf("%s is missing or is not %q", path, want)
		}
	}
}

// TestProcessesWithinOwners: the numbers of processes bound the owners of a page.
func TestProcessesWithinOwners(t *testing.T) {
	if family.MaxPID > mem.MaxOwners/2+1 {
		t.Errorf("%d processes, %d owners", family.MaxPID, mem.MaxOwners)
	}
}
