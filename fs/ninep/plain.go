package ninep

import (
	"sync"

	"loam/abi/linux"
	"loam/fs"
)

// Operations that need one request with Loam's servers, and several requests with other servers.

// lookup returns attributes of a name in a directory, or of fid itself if name is empty.
func (s *FileSystem) lookup(fid uint32, name string, a *Attr) error {
	switch {
	case s.conn.loam:
		return s.conn.call(TypeLookup, &Lookup{fid, name}, a)
	case name == "":
		return s.conn.call(TypeGetattr, &Getattr{fid, AttrBasic}, a)
	}
	own, q, err := s.walk(fid, []string{name})
	if err != nil {
		return err
	}
	defer s.conn.forget(own)
	err = s.conn.call(TypeGetattr, &Getattr{own, AttrBasic}, a)
	a.QID = q
	return err
}

// lists has room (*[]byte) for the replies to List. Their entries are copied.
var lists = sync.Pool{New: func() any { return new([]byte) }}

// listedRoom is the number of bytes of a Listed without its entries.
const listedRoom = 18

// list returns entries of a directory with their attributes, from an offset on. Only servers of Loam support this request.
func (s *FileSystem) list(m List) (entries []known, of QID, end bool, err error) {
	room := lists.Get().(*[]byte)
	defer lists.Put(room)
	var l Listed
	if err := s.conn.callInto(TypeList, &m, &l, *room); err != nil {
		return nil, QID{}, false, err
	}
	if n := len(l.Entries) + listedRoom; n > cap(*room) {
		*room = make([]byte, 0, 2*n)
	}
	const usual = 170 // bytes of an entry with a short name
	entries = make([]known, 0, len(l.Entries)/usual+1)
	var e Entry
	for rest := l.Entries; len(rest) > 0; {
		if rest, err = e.Next(rest); err != nil {
			return nil, QID{}, false, linux.EIO
		}
		if validName(e.Name) {
			entries = append(entries, known{name: e.Name, attr: recordOf(&e.Attr), next: e.Offset})
		}
	}
	return entries, l.QID, l.End != 0, nil
}

// validName reports whether a name of a server is one that a directory can have.
func validName(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > fs.MaxName {
		return false
	}
	for i := range len(name) {
		if name[i] == '/' || name[i] == 0 {
			return false
		}
	}
	return true
}

// entries returns entries of a directory, from an offset on.
func (s *FileSystem) entries(fid uint32, offset uint64) (all []fs.Entry, end bool, err error) {
	if s.conn.loam {
		entries, _, end, err := s.list(List{FID: fid, Offset: offset, Count: streamBytes})
		for i := range entries {
			all = append(all, entries[i].entry())
		}
		return all, end, err
	}
	own, _, err := s.walk(fid, nil)
	if err != nil {
		return nil, false, err
	}
	defer s.conn.forget(own)
	var q Opened
	if err := s.conn.call(TypeOpen, &Open{own, linux.O_RDONLY | linux.O_DIRECTORY}, &q); err != nil {
		return nil, false, err
	}
	var data Data
	if err := s.conn.call(TypeReaddir, &Read{own, offset, min(streamBytes, s.conn.size-ReadRoom)}, &data); err != nil {
		return nil, false, err
	}
	for rest := data.Data; len(rest) > 0; {
		var e Dirent
		if rest, err = e.Next(rest); err != nil {
			return nil, false, linux.EIO
		}
		if validName(e.Name) {
			all = append(all, fs.Entry{Name: e.Name, Inode: e.QID.Path, Type: fs.Mode(e.Type) << 12, Cursor: e.Offset})
		}
	}
	return all, len(data.Data) == 0, nil
}

// rename moves a name. Errors: EINVAL for flags that the server does not support.
func (s *FileSystem) rename(m RenameAt, flags fs.RenameFlags) error {
	switch {
	case s.conn.loam:
		return s.conn.call(TypeMove, &Move{m, uint32(flags)}, Empty{})
	case flags&fs.RenameExchange != 0:
		return linux.EINVAL
	}
	return s.conn.call(TypeRenameAt, &m, Empty{}) // RenameAt has no flag RenameNoReplace, but the caller has checked that the new name does not exist
}

// openAt opens a name in a directory, or with an empty name the file of fid itself, as a new FID. It may call meanwhile, if that is
// not nil, while the server works.
func (s *FileSystem) openAt(m *OpenAt, answer *OpenedAt, meanwhile func()) (err error) {
	m.New = s.conn.newFID()
	if s.conn.loam {
		if err := s.conn.callWhile(TypeOpenAt, m, answer, meanwhile); err != nil {
			s.conn.dropFID(m.New)
			return err
		}
		return nil
	}
	s.conn.dropFID(m.New)
	var names []string
	if m.Name != "" && m.Flags&linux.O_CREAT == 0 {
		names = []string{m.Name}
	}
	if m.New, _, err = s.walk(m.FID, names); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.conn.forget(m.New)
		}
	}()
	if m.Flags&linux.O_CREAT != 0 {
		err = s.conn.call(TypeCreate, &Create{m.New, m.Name, m.Flags, m.Mode, m.GID}, &Opened{})
	} else {
		err = s.conn.call(TypeOpen, &Open{m.New, m.Flags}, &Opened{})
	}
	if err != nil {
		return err
	}
	return s.conn.call(TypeGetattr, &Getattr{m.New, AttrBasic}, &answer.Attr)
}

// appendTo writes at the end of an open file, and returns the end. It is atomic only with Loam's
// servers.
func (s *FileSystem) appendTo(fid uint32, p []byte) (n int, end int64, err error) {
	if s.conn.loam {
		var a Appended
		err := s.conn.call(TypeAppend, &AppendData{fid, p}, &a)
		if err == nil && int(a.Count) > len(p) {
			err = linux.EIO
		}
		return int(a.Count), int64(a.End), err
	}
	var a Attr
	if err := s.conn.call(TypeGetattr, &Getattr{fid, AttrBasic}, &a); err != nil {
		return 0, 0, err
	}
	var c Count
	err = s.conn.call(TypeWrite, &Write{fid, a.Size, p}, &c)
	if err == nil && int(c.Count) > len(p) {
		err = linux.EIO
	}
	return int(c.Count), int64(a.Size) + int64(c.Count), err
}
