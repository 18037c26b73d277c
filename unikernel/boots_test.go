//go:build !race

package unikernel

import (
	"os"
	"strconv"
	"testing"
)

// bootsVariable is the environment variable with the number of boots in TestLinuxBoots. make boots sets it.
const bootsVariable = "LOAM_BOOTS"

// A Linux program and its child run correctly in many boots, with 1, 2 and 4 CPUs in turn.
func TestLinuxBoots(t *testing.T) {
	count := 1
	if text := os.Getenv(bootsVariable); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", bootsVariable, err)
		}
	}
	root := rootWith(t, "/bin/dash", "/bin/cat")
	cpus := []string{"1", "2", "4"}
	for i := range count {
		cmd := linuxCommand("/bin/dash", "-c", "echo parent; echo child | /bin/cat")
		cmd.Env = append(cmd.Env, withFiles+"="+root, machineCPUs+"="+cpus[i%3])
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "parent\nchild\n" {
			t.Fatalf("boot %d, on %s CPUs: %v\n%s", i+1, cpus[i%3], err, out)
		}
	}
	t.Logf("%d boots", count)
}
