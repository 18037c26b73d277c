package stack

import "loam/stack/socket"

// Errors of sockets, each with its Linux errno: see socket.Error.
var (
	ErrWouldBlock      = socket.ErrWouldBlock
	ErrInProgress      = socket.ErrInProgress
	ErrClosed          = socket.ErrClosed
	ErrRefused         = socket.ErrRefused
	ErrReset           = socket.ErrReset
	ErrAborted         = socket.ErrAborted
	ErrTimeout         = socket.ErrTimeout
	ErrPipe            = socket.ErrPipe
	ErrNetUnreachable  = socket.ErrNetUnreachable
	ErrHostUnreachable = socket.ErrHostUnreachable
	ErrNoProtocol      = socket.ErrNoProtocol
	ErrInUse           = socket.ErrInUse
	ErrNotAvailable    = socket.ErrNotAvailable
	ErrNotConnected    = socket.ErrNotConnected
	ErrIsConnected     = socket.ErrIsConnected
	ErrNoDestination   = socket.ErrNoDestination
	ErrMessageTooLong  = socket.ErrMessageTooLong
	ErrNotSupported    = socket.ErrNotSupported
	ErrHostDown        = socket.ErrHostDown
	ErrNoNetwork       = socket.ErrNoNetwork
	ErrProtocol        = socket.ErrProtocol
	ErrFamily          = socket.ErrFamily
	ErrAccess          = socket.ErrAccess
	ErrInvalid         = socket.ErrInvalid
	ErrNoBuffers       = socket.ErrNoBuffers
	ErrNoInterface     = socket.ErrNoInterface
	ErrExists          = socket.ErrExists
	ErrNotFound        = socket.ErrNotFound
)
