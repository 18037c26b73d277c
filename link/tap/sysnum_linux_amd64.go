package tap

// sysBPF is missing in package syscall on this machine.
const sysBPF = 321
