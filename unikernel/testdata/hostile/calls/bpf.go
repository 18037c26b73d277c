package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["bpf"] = tryBpf }

// tryBpf makes calls that extend or control the kernel: bpf, perf_event_open, userfaultfd, finit_module, init_module,
// add_key, keyctl, kexec_load and reboot.
func tryBpf() {
	for _, way := range attack.Ways {
		for _, number := range []uintptr{321, 298, 323, 313, 175, 248, 250, 246, 169} {
			if r := way(number, 0, attack.Words(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), 128, 0, 0, 0); r > 0 {
				println("call", number, "works")
			}
		}
	}
}
