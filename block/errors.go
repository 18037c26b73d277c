package block

import "errors"

// Errors of requests. Devices wrap them with details; users compare with errors.Is.
var (
	// ErrIO: the device could not carry out this request. Others are not affected.
	ErrIO = errors.New("block: input/output error")
	// ErrNoSpace: the storage behind a thin device is full. Others may succeed.
	ErrNoSpace = errors.New("block: no space left on the storage behind the device")
	// ErrReadOnly: the device does not accept writes.
	ErrReadOnly = errors.New("block: the device is read-only")
	// ErrUnsupported: the device lacks the operation.
	ErrUnsupported = errors.New("block: the device does not support the operation")
	// ErrRange: the request reaches beyond the end of the device.
	ErrRange = errors.New("block: request beyond the end of the device")
	// ErrInvalid: the request is not aligned to sectors, or exceeds a limit of Info.
	ErrInvalid = errors.New("block: invalid request")

	// ErrTimeout: the device did not complete this request within Info.Timeout. The device is shut
	// down: its other requests come back with ErrGone.
	ErrTimeout = errors.New("block: the device does not answer in time")
	// ErrGone: the device has failed or was removed. All later requests fail too.
	ErrGone = errors.New("block: the device is gone")
	// ErrClosed: the device was closed on this side. All later requests fail too.
	ErrClosed = errors.New("block: the device is closed")
	// ErrHeld: the device has failed, and may still access the memory of this request: see Request.
	ErrHeld = errors.New("block: the device may still access the memory")
)

// Final reports whether err means that no later request can succeed.
func Final(err error) bool {
	return errors.Is(err, ErrTimeout) || errors.Is(err, ErrGone) || errors.Is(err, ErrClosed)
}
