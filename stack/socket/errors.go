package socket

import (
	"net"
	"syscall"
)

// Error is an error of the sockets API. It can be compared in three ways: with the
// variables below, with the errno of Linux (errors.Is(err, syscall.ECONNREFUSED) holds
// for ErrRefused, so code written for package net works), and as text.
type Error struct {
	errno syscall.Errno
	text  string
}

// Errors of sockets, each with its Linux errno.
var (
	ErrWouldBlock      error = &Error{syscall.EAGAIN, "operation would block"}
	ErrInProgress      error = &Error{syscall.EINPROGRESS, "operation now in progress"}
	ErrClosed          error = &Error{syscall.EBADF, "use of closed network connection"}
	ErrRefused         error = &Error{syscall.ECONNREFUSED, "connection refused"}
	ErrReset           error = &Error{syscall.ECONNRESET, "connection reset by peer"}
	ErrAborted         error = &Error{syscall.ECONNABORTED, "connection aborted"}
	ErrTimeout         error = &Error{syscall.ETIMEDOUT, "connection timed out"}
	ErrPipe            error = &Error{syscall.EPIPE, "broken pipe"}
	ErrNetUnreachable  error = &Error{syscall.ENETUNREACH, "network is unreachable"}
	ErrHostUnreachable error = &Error{syscall.EHOSTUNREACH, "no route to host"}
	ErrNoProtocol      error = &Error{syscall.ENOPROTOOPT, "protocol not available"}
	ErrInUse           error = &Error{syscall.EADDRINUSE, "address already in use"}
	ErrNotAvailable    error = &Error{syscall.EADDRNOTAVAIL, "cannot assign requested address"}
	ErrNotConnected    error = &Error{syscall.ENOTCONN, "socket is not connected"}
	ErrIsConnected     error = &Error{syscall.EISCONN, "socket is already connected"}
	ErrNoDestination   error = &Error{syscall.EDESTADDRREQ, "destination address required"}
	ErrMessageTooLong  error = &Error{syscall.EMSGSIZE, "message too long"}
	ErrNotSupported    error = &Error{syscall.EOPNOTSUPP, "operation not supported"}
	ErrHostDown        error = &Error{syscall.EHOSTDOWN, "host is down"}
	ErrNoNetwork       error = &Error{syscall.ENONET, "machine is not on the network"}
	ErrProtocol        error = &Error{syscall.EPROTO, "protocol error"}
	ErrFamily          error = &Error{syscall.EAFNOSUPPORT, "address family not supported"}
	ErrAccess          error = &Error{syscall.EACCES, "permission denied"}
	ErrInvalid         error = &Error{syscall.EINVAL, "invalid argument"}
	ErrNoBuffers       error = &Error{syscall.ENOBUFS, "no buffer space available"}
	ErrNoInterface     error = &Error{syscall.ENODEV, "no such network interface"}
	ErrExists          error = &Error{syscall.EEXIST, "already there"}
	ErrNotFound        error = &Error{syscall.ESRCH, "not there"}
)

func (e *Error) Error() string { return e.text }

// Errno returns the Linux error number.
func (e *Error) Errno() syscall.Errno { return e.errno }

// Timeout implements net.Error: it reports true for ETIMEDOUT and EAGAIN.
func (e *Error) Timeout() bool {
	return e.errno == syscall.ETIMEDOUT || e.errno == syscall.EAGAIN
}

// Temporary implements net.Error.
func (e *Error) Temporary() bool { return e.errno.Temporary() }

// Unwrap returns the errno for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.errno }

// Is makes ErrClosed match net.ErrClosed.
func (e *Error) Is(target error) bool {
	return e.errno == syscall.EBADF && target == net.ErrClosed
}
