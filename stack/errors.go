package stack

import (
	"net"
	"syscall"
)

// socketError is an error of the sockets API. It can be compared in three ways: with the
// variables below, with the errno of Linux (errors.Is(err, syscall.ECONNREFUSED) holds
// for ErrRefused, so code written for package net works), and as text.
type socketError struct {
	errno syscall.Errno
	text  string
}

// Errors of sockets, each with its Linux errno.
var (
	ErrWouldBlock      error = &socketError{syscall.EAGAIN, "operation would block"}
	ErrInProgress      error = &socketError{syscall.EINPROGRESS, "operation now in progress"}
	ErrClosed          error = &socketError{syscall.EBADF, "use of closed network connection"}
	ErrRefused         error = &socketError{syscall.ECONNREFUSED, "connection refused"}
	ErrReset           error = &socketError{syscall.ECONNRESET, "connection reset by peer"}
	ErrAborted         error = &socketError{syscall.ECONNABORTED, "connection aborted"}
	ErrTimeout         error = &socketError{syscall.ETIMEDOUT, "connection timed out"}
	ErrPipe            error = &socketError{syscall.EPIPE, "broken pipe"}
	ErrNetUnreachable  error = &socketError{syscall.ENETUNREACH, "network is unreachable"}
	ErrHostUnreachable error = &socketError{syscall.EHOSTUNREACH, "no route to host"}
	ErrNoProtocol      error = &socketError{syscall.ENOPROTOOPT, "protocol not available"}
	ErrInUse           error = &socketError{syscall.EADDRINUSE, "address already in use"}
	ErrNotAvailable    error = &socketError{syscall.EADDRNOTAVAIL, "cannot assign requested address"}
	ErrNotConnected    error = &socketError{syscall.ENOTCONN, "socket is not connected"}
	ErrIsConnected     error = &socketError{syscall.EISCONN, "socket is already connected"}
	ErrNoDestination   error = &socketError{syscall.EDESTADDRREQ, "destination address required"}
	ErrMessageTooLong  error = &socketError{syscall.EMSGSIZE, "message too long"}
	ErrNotSupported    error = &socketError{syscall.EOPNOTSUPP, "operation not supported"}
	ErrHostDown        error = &socketError{syscall.EHOSTDOWN, "host is down"}
	ErrNoNetwork       error = &socketError{syscall.ENONET, "machine is not on the network"}
	ErrProtocol        error = &socketError{syscall.EPROTO, "protocol error"}
	ErrFamily          error = &socketError{syscall.EAFNOSUPPORT, "address family not supported"}
	ErrAccess          error = &socketError{syscall.EACCES, "permission denied"}
	ErrInvalid         error = &socketError{syscall.EINVAL, "invalid argument"}
	ErrNoBuffers       error = &socketError{syscall.ENOBUFS, "no buffer space available"}
	ErrNoInterface     error = &socketError{syscall.ENODEV, "no such network interface"}
	ErrExists          error = &socketError{syscall.EEXIST, "already there"}
	ErrNotFound        error = &socketError{syscall.ESRCH, "not there"}
)

func (e *socketError) Error() string { return e.text }

// Errno returns the Linux error number.
func (e *socketError) Errno() syscall.Errno { return e.errno }

// Timeout implements net.Error: it reports true for ETIMEDOUT and EAGAIN.
func (e *socketError) Timeout() bool {
	return e.errno == syscall.ETIMEDOUT || e.errno == syscall.EAGAIN
}

// Temporary implements net.Error.
func (e *socketError) Temporary() bool { return e.errno.Temporary() }

// Unwrap returns the errno for errors.Is and errors.As.
func (e *socketError) Unwrap() error { return e.errno }

// Is makes ErrClosed match net.ErrClosed.
func (e *socketError) Is(target error) bool {
	return e.errno == syscall.EBADF && target == net.ErrClosed
}
