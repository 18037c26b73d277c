package task

import (
	"fmt"
	"testing"

	"loam/abi/linux"
)

// /proc/PID/ns has a file for each namespace. setns(2) accepts the caller's own namespaces, and mounts of other processes.
func TestNamespaces(t *testing.T) {
	const path, buffer, file = dataAt + 512, dataAt + 0x1000, "/m/file"
	run(t, func(u *user) {
		open := func(name string) uint64 { return uint64(u.call(linux.SYS_OPEN, u.text(path, name), linux.O_RDONLY)) }
		same(t, "names", fmt.Sprint(u.list("/proc/self/ns")), "[. .. net uts ipc pid pid_for_children user mnt cgroup time time_for_children]")
		same(t, "network", u.link("/proc/self/ns/net"), "net:[4026531833]")
		same(t, "of a thread", u.link("/proc/thread-self/ns/pid_for_children"), "pid:[4026531836]")
		same(t, "map of users", u.read("/proc/self/uid_map"), "         0          0 4294967295\n")
		is(t, "stat", u.call(linux.SYS_STAT, u.text(path, "/proc/self/ns/uts"), buffer), 0)
		is(t, "inode", int64(u.load32(buffer+8)), 0xeffffffe)
		is(t, "chdir", u.call(linux.SYS_CHDIR, u.text(path, "/proc/self/ns/net")), failed(linux.ENOTDIR))

		network, mounts := open("/proc/self/ns/net"), open("/proc/self/ns/mnt")
		is(t, "read", u.call(linux.SYS_READ, network, buffer, 1), failed(linux.EINVAL))
		is(t, "open for writing", u.call(linux.SYS_OPEN, u.text(path, "/proc/self/ns/net"), linux.O_RDWR), failed(linux.EPERM))
		is(t, "map", u.call(linux.SYS_MMAP, 0, 4096, linux.PROT_READ, linux.MAP_PRIVATE, network, 0), failed(linux.ENODEV))
		is(t, "own network", u.call(linux.SYS_SETNS, network, linux.CLONE_NEWNET), 0)
		is(t, "any kind", u.call(linux.SYS_SETNS, network, 0), 0)
		is(t, "other kind", u.call(linux.SYS_SETNS, network, linux.CLONE_NEWUTS), failed(linux.EINVAL))
		is(t, "no namespace", u.call(linux.SYS_SETNS, open("/0"), 0), failed(linux.EINVAL))
		is(t, "no descriptor", u.call(linux.SYS_SETNS, 99, 0), failed(linux.EBADF))
		is(t, "kind", u.call(linux.SYS_IOCTL, network, linux.NS_GET_NSTYPE, 0), linux.CLONE_NEWNET)
		is(t, "parent", u.call(linux.SYS_IOCTL, network, linux.NS_GET_PARENT, 0), failed(linux.EINVAL))
		is(t, "parent of processes", u.call(linux.SYS_IOCTL, open("/proc/self/ns/pid"), linux.NS_GET_PARENT, 0), failed(linux.EPERM))
		is(t, "owner of the network", u.call(linux.SYS_IOCTL, network, linux.NS_GET_OWNER_UID, buffer), failed(linux.EINVAL))
		users := uint64(u.call(linux.SYS_IOCTL, network, linux.NS_GET_USERNS, 0))
		is(t, "kind of it", u.call(linux.SYS_IOCTL, users, linux.NS_GET_NSTYPE, 0), linux.CLONE_NEWUSER)
		is(t, "owner of users", u.call(linux.SYS_IOCTL, users, linux.NS_GET_OWNER_UID, buffer), 0)
		is(t, "owner's owner", u.call(linux.SYS_IOCTL, users, linux.NS_GET_USERNS, 0), failed(linux.EPERM))
		is(t, "own users", u.call(linux.SYS_SETNS, users, 0), failed(linux.EINVAL))
		is(t, "no namespace", u.call(linux.SYS_IOCTL, open("/0"), linux.NS_GET_NSTYPE, 0), failed(linux.ENOTTY))

		is(t, "mkdir", u.call(linux.SYS_MKDIR, u.text(path, "/m"), 0o755), 0)
		is(t, "unshare", u.call(linux.SYS_UNSHARE, linux.CLONE_NEWNS), 0)
		same(t, "own mounts", u.link("/proc/self/ns/mnt"), "mnt:[4026531840]")
		is(t, "mount", u.call(linux.SYS_MOUNT, 0, u.text(path, "/m"), u.text(buffer, "tmpfs"), 0, 0), 0)
		is(t, "a file there", min(u.call(linux.SYS_OPEN, u.text(path, file), linux.O_CREAT|linux.O_WRONLY, 0o600), 0), 0)
		is(t, "back", u.call(linux.SYS_SETNS, mounts, linux.CLONE_NEWNS), 0)
		same(t, "first mounts", u.link("/proc/self/ns/mnt"), "mnt:[4026531832]")
		is(t, "no file here", u.call(linux.SYS_STAT, u.text(path, file), buffer), failed(linux.ENOENT))

		first := open("/proc/1/ns/mnt")
		is(t, "first mounts by process 1", u.call(linux.SYS_SETNS, first, linux.CLONE_NEWNS), 0)

		is(t, "setuid", u.call(linux.SYS_SETUID, 1000), 0)
		is(t, "without a right", u.call(linux.SYS_SETNS, network, 0), failed(linux.EPERM))
		exit(u, 0)
	})
}

// setns(2) does not move another process to other mounts: it fails while two processes share their root and working directory.
func TestNamespaceOfSharedRoot(t *testing.T) {
	const path = dataAt + 512
	run(t, func(u *user) {
		own := uint64(u.call(linux.SYS_OPEN, u.text(path, "/proc/self/ns/mnt"), linux.O_RDONLY))
		u.frame.R15 = 1
		child := u.call(linux.SYS_CLONE, linux.CLONE_FS|linux.SIGCHLD, 0, 0, 0)
		is(t, "shared", u.call(linux.SYS_SETNS, own, linux.CLONE_NEWNS), failed(linux.EINVAL))
		is(t, "kill", u.call(linux.SYS_KILL, uint64(child), linux.SIGKILL), 0)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		is(t, "after the end of the other", u.call(linux.SYS_SETNS, own, linux.CLONE_NEWNS), 0)
		u.frame.R15 = 1
		child = u.call(linux.SYS_CLONE, linux.CLONE_FS|linux.SIGCHLD, 0, 0, 0)
		is(t, "unshare", u.call(linux.SYS_UNSHARE, linux.CLONE_FS), 0)
		is(t, "no longer shared", u.call(linux.SYS_SETNS, own, linux.CLONE_NEWNS), 0)
		is(t, "kill", u.call(linux.SYS_KILL, uint64(child), linux.SIGKILL), 0)
		exit(u, 0)
	}, func(u *user) { u.call(linux.SYS_PAUSE) })
}
