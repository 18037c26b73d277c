package ninep

import (
	"bytes"
	"reflect"
	"testing"
)

// examples has one message of each type, by its type as a request. The type of a reply is the type of its request plus one.
var examples = map[Type]Message{
	TypeError:         &Error{2},
	TypeVersion:       &Version{8192, VersionLinux},
	TypeAuth:          &Auth{1, "u", "t", 3},
	TypeAttach:        &Attach{1, NoFID, "1:2", "/", 3},
	TypeAttach + 1:    &OneQID{QID{QIDDir, 1, 2}},
	TypeFlush:         &Flush{7},
	TypeWalk:          &Walk{1, 2, []string{"a", "b"}},
	TypeWalk + 1:      &Walked{[]QID{{0, 1, 2}, {QIDSymlink, 3, 4}}},
	TypeClunk:         &OneFID{9},
	TypeClunk + 1:     &Empty{},
	TypeRead:          &Read{1, 1 << 40, 5},
	TypeRead + 1:      &Data{[]byte("data")},
	TypeWrite:         &Write{1, 2, []byte("data")},
	TypeWrite + 1:     &Count{3},
	TypeStatfs + 1:    &Statfs{1, 2, 3, 4, 5, 6, 7, 8, 9},
	TypeOpen:          &Open{1, 2},
	TypeOpen + 1:      &Opened{QID{0, 1, 2}, 3},
	TypeCreate:        &Create{1, "n", 2, 3, 4},
	TypeSymlink:       &Symlink{1, "n", "target", 2},
	TypeMknod:         &Mknod{1, "n", 2, 3, 4, 5},
	TypeRename:        &Rename{1, 2, "n"},
	TypeReadlink + 1:  &Target{"t"},
	TypeGetattr:       &Getattr{1, AttrBasic},
	TypeGetattr + 1:   &Attr{Valid: 1, QID: QID{0, 1, 2}, Mode: 3, UID: 4, GID: 5, Links: 6, Size: 7, Birth: Time{8, 9}},
	TypeSetattr:       &Setattr{1, 2, 3, 4, 5, 6, Time{7, 8}, Time{9, 10}},
	TypeXattrWalk:     &XattrWalk{1, 2, "user.a"},
	TypeXattrWalk + 1: &Size{3},
	TypeXattrCreate:   &XattrCreate{1, "user.a", 2, 3},
	TypeFsync:         &Fsync{1, 1},
	TypeLock:          &Lock{1, LockWrite, LockBlock, 2, 3, 4, "c"},
	TypeLock + 1:      &Status{LockBlocked},
	TypeGetLock:       &GetLock{1, Range{LockRead, 2, 3, 4, "c"}},
	TypeGetLock + 1:   &Range{LockUnlock, 2, 3, 4, "c"},
	TypeLink:          &Link{1, 2, "n"},
	TypeMkdir:         &Mkdir{1, "n", 2, 3},
	TypeRenameAt:      &RenameAt{1, "a", 2, "b"},
	TypeUnlinkAt:      &UnlinkAt{1, "a", 0x200},
	TypeLookup:        &Lookup{1, "n"},
	TypeList:          &List{1, "n", 2, 3},
	TypeList + 1:      &Listed{QID{0, 1, 2}, 1, []byte("entries")},
	TypeFetch:         &Fetch{1, 2, 3, []string{"a", "b"}},
	TypeOpenAt:        &OpenAt{1, 2, "n", 3, 4, 5, 6, 7},
	TypeOpenAt + 1:    &OpenedAt{Attr{Mode: 1}, []byte("data")},
	TypeAppend:        &AppendData{1, []byte("data")},
	TypeAppend + 1:    &Appended{1, 2},
	TypeMove:          &Move{RenameAt{1, "a", 2, "b"}, 1},
	TypeAllocate:      &Allocate{1, 2, 3, 4},
	TypeSeek:          &Seek{1, 2, 3},
	TypeTemp:          &Temp{1, 2, 3, 4, 5, 6},
}

// empty returns a new, empty message of the same type as m.
func empty(m Message) Message { return reflect.New(reflect.TypeOf(m).Elem()).Interface().(Message) }

// An encoded message is decoded to the same values. A message that is cut anywhere, or that has one more byte, is
// rejected.
func TestRoundTrip(t *testing.T) {
	for kind, m := range examples {
		b := Append(nil, kind, 5, m)
		h := ParseHeader(b)
		if h != (Header{uint32(len(b)), kind, 5}) {
			t.Errorf("%d: header %+v", kind, h)
		}
		again := empty(m)
		if err := Parse(b[HeaderSize:], again); err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%d: %+v became %+v, %v", kind, m, again, err)
		}
		for n := HeaderSize; n < len(b); n++ {
			if kind == TypeFsync && n == HeaderSize+4 {
				continue // the last fields are optional, since older clients do not send them
			}
			if err := Parse(b[HeaderSize:n], empty(m)); err == nil {
				t.Errorf("%d: %d of %d bytes are a message", kind, n, len(b))
			}
		}
		if err := Parse(append(b[HeaderSize:], 0), empty(m)); err == nil {
			t.Errorf("%d: a byte too many", kind)
		}
	}
}

// The encoding of one message is the specification's, byte by byte: Twalk of diod's protocol.md, with tag 1.
func TestBytes(t *testing.T) {
	got := Append(nil, TypeWalk, 1, &Walk{0x01020304, 5, []string{"ab"}})
	want := []byte{21, 0, 0, 0, 110, 1, 0, 4, 3, 2, 1, 5, 0, 0, 0, 1, 0, 2, 0, 'a', 'b'}
	if !bytes.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A body that can be decoded is encoded to the same bytes again.
func FuzzParse(f *testing.F) {
	for kind, m := range examples {
		f.Add(uint8(kind), Append(nil, kind, 0, m)[HeaderSize:])
	}
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		example := examples[Type(kind)]
		if example == nil {
			return
		}
		m := empty(example)
		if Parse(body, m) != nil {
			return
		}
		if _, ok := m.(*Fsync); ok && len(body) == 4 {
			return
		}
		if again := Append(nil, Type(kind), 0, m)[HeaderSize:]; !bytes.Equal(again, body) {
			t.Errorf("%v became %v", body, again)
		}
		for _, list := range []interface {
			Next([]byte) ([]byte, error)
		}{new(Dirent), new(Entry), new(Content)} {
			for rest := body; len(rest) > 0; {
				var err error
				if rest, err = list.Next(rest); err != nil {
					break
				}
			}
		}
	})
}
