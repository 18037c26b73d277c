//go:build !race

package image

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"loam/boot"
)

// bootsVariable is the environment variable with the number of boots in TestBoots. make boots sets it.
const bootsVariable = "LOAM_BOOTS"

// A program that uses all CPUs runs correctly in many boots, on each machine model, with 1, 2 and 4 CPUs in turn. The
// output of the first failing machine is saved to a file.
func TestBoots(t *testing.T) {
	count := 9
	if text := os.Getenv(bootsVariable); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", bootsVariable, err)
		}
	}
	image := bootable(t)
	models := []string{"q35", "microvm", "pc"}
	cpus := []string{"1", "2", "4"}
	for i := range count {
		model, smp := models[i%3], cpus[i/3%3]
		out, status := machine(t, image, boot.Config{Args: []string{"guest", "spread"}},
			"-machine", model, "-m", "64M", "-smp", smp)
		if want := "spread over " + smp + "\n"; status == 0 && out == want {
			continue
		}
		kept := filepath.Join(os.TempDir(), fmt.Sprintf("loam-boot-%d.log", os.Getpid()))
		os.WriteFile(kept, []byte(out), 0o644)
		t.Fatalf("boot %d, on %s with %s CPUs: status %d; what it said is in %s:\n%s", i+1, model, smp, status, kept, out)
	}
	t.Logf("%d boots", count)
}
