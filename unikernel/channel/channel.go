// Package channel is how a program in a virtual machine reaches the standard streams
// of the loam command: frames over one virtio console, whose other end the command
// holds.
//
// The program asks, and the command answers. Input is read when the program reads,
// and no further than it asks, so what it leaves is there for who reads next. Of
// output the program may have [Window] bytes a stream under way that the command has
// not written yet, so that a stream nobody takes holds up who writes to it and
// nobody else, and QEMU, which loses what a console cannot take, never has more than
// its socket holds.
//
// A frame is a [Header] and its payload:
//
//	kind    program to command           command to program
//	Read    how many bytes at most       a Result, and the bytes; none is the end
//	Output  bytes                        a Result: how many have been written
//	Errors  the same                     the same
//	Terminal a Request, its argument     a Result, the argument as it is then
//	Results bytes of the archive         a Result: how many have been taken
//	Keys    like Read                    what Read gets, of the terminal
//
// There is one Read, one Keys and one Terminal under way at a time.
package channel

import (
	"encoding/binary"
	"errors"
	"io"
)

// Kind is what a frame is about.
type Kind uint8

// Kinds.
const (
	Read     Kind = iota // standard input
	Output               // standard output
	Errors               // standard error
	Terminal             // an ioctl(2) on one of them
	Results              // files for the command, when the program ends
	Keys                 // what is typed at the terminal, where that is not standard input
	kinds
)

// Bounds, in bytes.
const (
	Window     = 32 << 10 // of a stream under way
	MaxPayload = 16 << 10
	HeaderLen  = 8
)

// ErrFrame is returned for what is no frame.
var ErrFrame = errors.New("channel: the other end does not speak the channel's language")

// Append appends a frame to b.
func Append(b []byte, k Kind, payload []byte) []byte {
	b = append(b, byte(k), 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// Next reads a frame into room, of MaxPayload bytes.
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

// Result begins an answer.
type Result struct {
	Errno uint32 // of Linux; 0: none
	Count uint32 // of bytes
}

// ResultLen is that of a Result.
const ResultLen = 8

// Append appends it to b.
func (r Result) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, r.Errno)
	return binary.LittleEndian.AppendUint32(b, r.Count)
}

// ParseResult takes it from the front of an answer.
func ParseResult(b []byte) (r Result, rest []byte, err error) {
	if len(b) < ResultLen {
		return r, nil, ErrFrame
	}
	return Result{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])}, b[ResultLen:], nil
}

// Request begins a frame of kind Terminal.
type Request struct {
	FD     uint32 // 0, 1 or 2
	Number uint32 // of the ioctl
}

// Append appends it to b.
func (r Request) Append(b []byte) []byte {
	return Result{r.FD, r.Number}.Append(b)
}

// ParseRequest takes it from the front of a payload.
func ParseRequest(b []byte) (r Request, rest []byte, err error) {
	two, rest, err := ParseResult(b)
	return Request{two.Errno, two.Count}, rest, err
}
