package unikernel

import (
	"context"
	"os"
	"os/exec"
	"syscall"

	"loam/unikernel/sandbox"
)

// If the loam command runs as root, QEMU runs as the user sandbox.Nobody. QEMU inherits all files as descriptors, so it
// needs no access to files of root. Its program and libraries must be readable by everybody. If a group owns /dev/kvm,
// QEMU keeps that group.

// unprivileged returns the credentials of the unprivileged user for QEMU. It returns nil if QEMU keeps
// this process's user: because that user is not root, or because root is to be kept.
func unprivileged(keepRoot bool) *syscall.Credential {
	if keepRoot || os.Geteuid() != 0 {
		return nil
	}
	c := &syscall.Credential{Uid: sandbox.Nobody, Gid: sandbox.Nobody}
	if st, err := os.Stat("/dev/kvm"); err == nil {
		if sys := st.Sys().(*syscall.Stat_t); sys.Gid != 0 && st.Mode()&0o060 == 0o060 {
			c.Groups = []uint32{sys.Gid}
		}
	}
	return c
}

// runsAsNobody reports whether QEMU starts as the user sandbox.Nobody. On some machines only root may
// search the root folder.
func runsAsNobody(ctx context.Context, path string) bool {
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: unprivileged(false)}
	return cmd.Run() == nil
}
