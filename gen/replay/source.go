// Package replay sends captured traffic: the frames of a pcap or pcapng file, at a given rate or with their
// original gaps.
//
// Reading order: source.go (reading the file), survey.go (a summary of the file), rewrite.go (changes to frames),
// replay.go (sending).
package replay

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"loam/link"
	"loam/wire"
)

// Source reads frames from a capture file.
type Source struct {
	next    func() ([]byte, gopacket.CaptureInfo, error)
	first   time.Time
	last    time.Duration
	began   bool
	Skipped uint64 // number of records that are not frames, because they are too short or too long
	Cut     uint64 // number of frames that were captured only in part
	Broken  bool   // the file ends within a record, because the capture was interrupted
}

// ErrFormat is wrapped by every error about the format of a file.
var ErrFormat = errors.New("not a capture file")

const (
	magicNg   = 0x0a0d0d0a
	magicGzip = 0x1f8b
)

// NewSource returns a Source that reads a file. The file may be compressed with gzip.
func NewSource(r io.Reader) (*Source, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	head, err := b.Peek(4)
	if err != nil {
		return nil, fmt.Errorf("%w: it is empty", ErrFormat)
	}
	if binary.BigEndian.Uint16(head) == magicGzip {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		b = bufio.NewReaderSize(z, 1<<16)
		if head, err = b.Peek(4); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
	}
	s := &Source{}
	var kind layers.LinkType
	if binary.BigEndian.Uint32(head) == magicNg {
		ng, err := pcapgo.NewNgReader(b, pcapgo.NgReaderOptions{ErrorOnMismatchingLinkType: true})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		s.next, kind = ng.ReadPacketData, ng.LinkType()
	} else {
		old, err := pcapgo.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		s.next, kind = old.ReadPacketData, old.LinkType()
	}
	if kind != layers.LinkTypeEthernet {
		return nil, fmt.Errorf("%w of Ethernet frames: its link type is %v", ErrFormat, kind)
	}
	return s, nil
}

// Next returns the next frame and its time since the first frame. The caller owns the frame. At the end it returns
// io.EOF, even if the file ends within a record; the incomplete frame is not returned. The time never decreases: a
// frame that was captured earlier than its predecessor gets its predecessor's time.
func (s *Source) Next() (frame []byte, at time.Duration, err error) {
	for {
		b, info, err := s.next()
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			s.Broken = true
			return nil, 0, io.EOF
		case errors.Is(err, io.EOF):
			return nil, 0, io.EOF
		case errors.Is(err, pcapgo.ErrNgLinkTypeMismatch):
			return nil, 0, fmt.Errorf("%w of Ethernet frames alone: its interfaces have several link types", ErrFormat)
		case err != nil:
			return nil, 0, fmt.Errorf("the file is damaged: %w", err)
		}
		if len(b) < wire.EthernetLen || len(b) > link.MaxFrame {
			s.Skipped++
			continue
		}
		if info.Length > len(b) {
			s.Cut++
		}
		if !s.began {
			s.first, s.began = info.Timestamp, true
		}
		s.last = max(s.last, info.Timestamp.Sub(s.first))
		return b, s.last, nil
	}
}
