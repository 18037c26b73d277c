package fd

// sysSendmmsg is missing in package syscall on this machine.
const sysSendmmsg = 307
