package fd

import "syscall"

const sysSendmmsg = syscall.SYS_SENDMMSG
