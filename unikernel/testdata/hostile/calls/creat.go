package main

import (
	"syscall"

	"example.com/hostile/attack"
)

func init() { techniques["creat"] = tryCreat }

// tryCreat creates files by creat(2), mknod(2), link(2), symlink(2) and rename(2).
func tryCreat() {
	for _, way := range attack.Ways {
		secret, mark := attack.String(attack.Secret), attack.String(attack.Mark)
		way(syscall.SYS_CREAT, mark, 0o666, 0, 0, 0, 0)
		way(syscall.SYS_MKNOD, mark, syscall.S_IFREG|0o666, 0, 0, 0, 0)
		way(syscall.SYS_LINK, secret, mark, 0, 0, 0, 0)
		way(syscall.SYS_SYMLINK, secret, mark, 0, 0, 0, 0)
		way(syscall.SYS_RENAME, secret, mark, 0, 0, 0, 0)
		way(syscall.SYS_MKDIR, mark, 0o777, 0, 0, 0, 0)
	}
}
