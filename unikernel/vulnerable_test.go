//go:build !race

package unikernel

import "testing"

// On a processor that is vulnerable to Meltdown, ring 3 runs on page tables of its own. These tests run Linux programs on such
// a processor. Any other test runs on it if QEMU is a script that adds the options of onVulnerable (qemuWith).

// onVulnerable returns variables with which commands run QEMU with a vulnerable processor: QEMU's own, with Intel's name.
func onVulnerable(t *testing.T) []string {
	t.Helper()
	return qemuWith(t, "-cpu max,vendor=GenuineIntel")
}

// Programs read that the processor is vulnerable, and that the kernel isolates page tables.
func TestLinuxVulnerableFiles(t *testing.T) {
	root := rootWith(t, "/bin/dash", "/bin/cat", "/bin/grep")
	const script = "/bin/cat /sys/devices/system/cpu/vulnerabilities/meltdown; /bin/grep -c 'bugs.*cpu_meltdown' /proc/cpuinfo"
	for want, env := range map[string][]string{
		"Mitigation: PTI\n2\n": onVulnerable(t),
		"Not affected\n0\n":    qemuWith(t, "-cpu max,vendor=AuthenticAMD"),
	} {
		cmd := linuxCommand("/bin/dash", "-c", script)
		cmd.Env = append(cmd.Env, withFiles+"="+root, machineCPUs+"=2")
		cmd.Env = append(cmd.Env, env...)
		if got, _ := cmd.CombinedOutput(); string(got) != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}

// Shells start programs, connect them by pipes, send them signals and wait for them.
func TestLinuxVulnerablePrograms(t *testing.T) {
	root := rootWith(t, "/bin/bash", "/bin/cat", "/bin/ls", "/bin/sleep", "/bin/sort", "/bin/mkdir", "/bin/ln")
	env := onVulnerable(t)
	for _, script := range []string{
		"for i in c a b; do echo $i; done | /bin/sort | /bin/cat; for i in 1 2 3; do /bin/sleep 0.05 & done; wait; echo $?",
		"trap 'echo trapped' USR1; kill -USR1 $$; echo $?; { /bin/sleep 100 & kill -9 $!; wait $!; } 2>f; echo $?; exec /bin/cat /none",
		"f() { (( $1 > 0 )) && ( f $(($1 - 1)) ); echo $1; }; f 30",
	} {
		want := onHost(t, []string{"/bin/bash", "-c", script})
		for _, cpus := range []string{"1", "2"} {
			cmd := linuxCommand("/bin/bash", "-c", script)
			cmd.Env = append(cmd.Env, withFiles+"="+root, machineCPUs+"="+cpus)
			cmd.Env = append(cmd.Env, env...)
			if got, _ := cmd.CombinedOutput(); string(got) != want {
				t.Errorf("%s on %s CPUs:\n%s\nwant\n%s", script, cpus, got, want)
			}
		}
	}
}

// Tracers, breakpoints, threads and restartable sequences work as on Linux.
func TestLinuxVulnerableTracer(t *testing.T) { compareC(t, "tracer", onVulnerable(t)...) }
func TestLinuxVulnerableRseq(t *testing.T)   { compareC(t, "rseq", onVulnerable(t)...) }

// Hostile programs cannot harm the machine, and all of their pages, among them both root tables, are free afterwards.
func TestLinuxVulnerableHostile(t *testing.T) {
	isolatedWith(t, onVulnerable(t), "hostile", "quick")
}
