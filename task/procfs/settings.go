package procfs

import (
	"fmt"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/credential"
)

// Settings returns files of /proc/sys, by path below /proc, whose content does not change. They cannot be written: task/setting has the
// files that can. A setting that has no effect on Loam has Linux's default, or the value that says that nothing is limited.
func Settings() map[string]func() string {
	files := map[string]func() string{}
	for path, value := range defaults {
		files["sys/"+path] = func() string { return fmt.Sprintln(value) }
	}
	for path, value := range map[string]any{
		"kernel/cap_last_cap":       linux.CAP_LAST_CAP,
		"kernel/ngroups_max":        credential.MaxGroups,
		"kernel/randomize_va_space": 2, // stack, mappings and heap
		"vm/mmap_min_addr":          mem.DefaultFloor,
		"vm/swappiness":             60,
		"net/ipv4/ip_forward":       0,
		"net/ipv6/bindv6only":       0,

		"user/max_user_namespaces":   0, // namespaces of these kinds cannot be created
		"user/max_pid_namespaces":    0,
		"user/max_uts_namespaces":    0,
		"user/max_ipc_namespaces":    0,
		"user/max_net_namespaces":    0,
		"user/max_cgroup_namespaces": 0,
		"user/max_time_namespaces":   0,
		"user/max_mnt_namespaces":    unlimited,
	} {
		files["sys/"+path] = func() string { return fmt.Sprintln(value) }
	}
	files["swaps"] = func() string { return "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n" }
	files["modules"] = func() string { return "" }
	return files
}
