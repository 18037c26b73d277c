package ninep

import (
	"bufio"
	"bytes"
	"io"
	"testing"
)

// A short reply with data keeps its data when the next reply is received.
func TestReplyKeepsData(t *testing.T) {
	var stream []byte
	for _, text := range []string{"first", "other"} {
		stream = Append(stream, TypeReaddir.Reply(), 1, &Data{[]byte(text)})
	}
	in := bufio.NewReader(bytes.NewReader(stream))
	var room []byte
	var replies [2]Data
	for i := range replies {
		var header [HeaderSize]byte
		if _, err := io.ReadFull(in, header[:]); err != nil {
			t.Fatal(err)
		}
		k := &call{kind: TypeReaddir, reply: &replies[i]}
		if err := k.receive(in, ParseHeader(header[:]), &room); err != nil {
			t.Fatal(err)
		}
	}
	if string(replies[0].Data) != "first" || string(replies[1].Data) != "other" {
		t.Errorf("%q, %q", replies[0].Data, replies[1].Data)
	}
}
