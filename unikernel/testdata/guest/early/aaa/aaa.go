// Package aaa sends itself a message while it is initialised, by system calls alone, before package net is initialised.
package aaa

import "syscall"

// Message is the message as it was received, and FD the descriptor that received it.
var Message, FD = hello()

func hello() (string, int) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err.Error(), 0
	}
	syscall.Write(fds[0], []byte("early"))
	b := make([]byte, 10)
	n, err := syscall.Read(fds[1], b)
	if err != nil {
		return err.Error(), 0
	}
	return string(b[:n]), fds[1]
}
