package procfs

import (
	"os"
	"strings"
	"testing"
)

// The files exist on Linux, too, and have the same number of words. Limits that no administrator can change are equal.
// Four files are left out. The number of words in modules, swaps and core_pattern depends on the host. Loam does not have all actions of
// seccomp(2).
func TestSettingsAsLinux(t *testing.T) {
	settings := Settings()
	for path, text := range settings {
		want, err := os.ReadFile("/proc/" + path)
		switch path {
		case "modules", "swaps", "sys/kernel/core_pattern", "sys/kernel/seccomp/actions_avail":
			continue
		}
		if strings.HasPrefix(path, "sys/net/ipv6/") && os.IsNotExist(err) {
			continue // the host's kernel has no IPv6
		}
		if err != nil || len(strings.Fields(string(want))) != len(strings.Fields(text())) {
			t.Errorf("%s: %q, and on Linux %q, %v", path, text(), want, err)
		}
	}
	for path, want := range map[string]string{"sys/kernel/cap_last_cap": "40\n", "sys/kernel/ngroups_max": "65536\n"} {
		if got := settings[path](); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
