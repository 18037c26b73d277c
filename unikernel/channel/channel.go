// Package channel connects a program in a virtual machine to the standard streams of the loam command. It
// exchanges frames over one virtio console, whose other end the command holds.
//
// The program sends requests, and the command answers. The command reads input only when the program reads,
// and only as much as the program asks for. Unread input stays available to the next process. For output,
// the program may have [Window] bytes per stream that the command has not written yet. So a stream whose
// output is not consumed blocks only its own writers. The window also limits what QEMU must buffer: QEMU
// drops bytes that its console socket cannot take.
//
// A frame is a header of [HeaderLen] bytes and its payload. The header is the [Kind], three zero bytes, and
// the payload's length in little-endian order.
//
//	kind     program to command            command to program
//	Read     maximum number of bytes       a Result, and the bytes; none means end of file
//	Output   bytes                         a Result: the number of bytes written
//	Errors   the same                      the same
//	Terminal a Request and its argument    a Result and the argument after the call
//	Results  bytes of the archive          a Result: the number of bytes taken
//	Keys     like Read                     like Read, from the terminal
//
// At most one Read, one Keys and one Terminal request are outstanding at a time.
package channel

import (
	"encoding/binary"
	"errors"
	"io"
)

// Kind is the kind of a frame.
type Kind uint8

// Values of Kind: what a frame on the channel carries.
const (
	Read     Kind = iota // a read of standard input
	Output               // a write to standard output
	Errors               // a write to standard error
	Terminal             // an ioctl(2) on a standard stream
	Results              // the archive of files that the command receives when the program ends
	Keys                 // a read of the terminal, if standard input is not the terminal
	kinds
)

// Sizes of frames and windows in bytes.
const (
	Window     = 32 << 10 // maximum output per stream that the command has not written yet
	MaxPayload = 16 << 10
	HeaderLen  = 8
)

// Suspend is the number of a Terminal request that stops the command as Ctrl-Z does. The answer is sent when the command
// continues. Linux has no request with this number.
const Suspend = 0xffff_4c53

// ErrFrame is the error for a malformed or unexpected frame from the other end.
var ErrFrame = errors.New("channel: the other end does not speak the channel's language")

// Append appends a frame to b.
func Append(b []byte, k Kind, payload []byte) []byte {
	b = append(b, byte(k), 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// Next reads a frame from r. room must have MaxPayload bytes; payload is a part of it.
func Next(r io.Reader, room []byte) (k Kind, payload []byte, err error) {
	var header [HeaderLen]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	k = Kind(header[0])
	size := binary.LittleEndian.Uint32(header[4:])
	if k >= kinds || size > MaxPayload {
		return 0, nil, ErrFrame
	}
	payload = room[:size]
	_, err = io.ReadFull(r, payload)
	return k, payload, err
}

// Result is the first part of an answer.
type Result struct {
	Errno uint32 // Linux errno; 0: success
	Count uint32 // number of bytes that the call has read or written
}

// ResultLen is the encoded length of a Result, in bytes.
const ResultLen = 8

// Append appends the encoded result to b.
func (r Result) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, r.Errno)
	return binary.LittleEndian.AppendUint32(b, r.Count)
}

// ParseResult decodes the result at the start of an answer, and returns the rest.
func ParseResult(b []byte) (r Result, rest []byte, err error) {
	if len(b) < ResultLen {
		return r, nil, ErrFrame
	}
	return Result{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])}, b[ResultLen:], nil
}

// Request is the first part of a Terminal frame from the program.
type Request struct {
	FD     uint32 // descriptor of the standard stream: 0, 1 or 2
	Number uint32 // request number of the ioctl
}

// Append appends the encoded request to b.
func (r Request) Append(b []byte) []byte {
	return Result{r.FD, r.Number}.Append(b)
}

// ParseRequest decodes the request at the start of a payload, and returns the rest.
func ParseRequest(b []byte) (r Request, rest []byte, err error) {
	two, rest, err := ParseResult(b)
	return Request{two.Errno, two.Count}, rest, err
}
