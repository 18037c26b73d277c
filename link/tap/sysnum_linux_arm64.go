package tap

import "syscall"

const sysBPF = syscall.SYS_BPF
