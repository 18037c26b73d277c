package registry

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Record describes a guest.
type Record struct {
	Name     string    `json:"name"`
	Program  string    `json:"program"`  // as the user has named it
	Platform string    `json:"platform"` // "process" or "vm"
	Ports    []Port    `json:"ports"`
	Detached bool      `json:"detached"`
	PID      int       `json:"pid"` // process ID of the loam command that runs the guest
	Birth    uint64    `json:"-"`   // start time of that process: see birthOf
	Created  time.Time `json:"created"`
	Started  time.Time `json:"started,omitzero"` // zero: the program has not started
}

// Port is a published port.
type Port struct {
	Host     string `json:"host"`  // ADDRESS:PORT, or PORT on 127.0.0.1 and ::1
	Guest    uint16 `json:"guest"` // port of the guest
	Protocol string `json:"protocol"`
}

// stored is the content of the file of a record.
type stored struct {
	Record
	Birth uint64 `json:"birth"`
}

// Result describes the end of a guest.
type Result struct {
	Status int       `json:"status"`          // exit status of the loam command
	Reason string    `json:"reason,omitzero"` // error that ended the guest; empty: the program has ended
	Ended  time.Time `json:"ended"`
}

// Names of the files of an entry.
const (
	lockFile   = "lock"
	recordFile = "guest"
)

// Entry is the entry of a guest that this process runs. Its methods must not be called at the same time. Its
// Output may be used at the same time.
type Entry struct {
	r      *Registry
	dir    *os.Root
	folder *os.File // the folder of the entry, locked against systemd-tmpfiles: see make
	lock   *os.File // locked
	record Record
}

// Create makes the entry of a guest, which this process is about to run. Create sets the fields PID, Birth and Created of
// the record, and chooses a name if it has none. It returns an *Error if the name is not valid, or if an entry has it. r must
// stay open as long as the entry.
func (r *Registry) Create(ctx context.Context, record Record) (*Entry, error) {
	if record.Name != "" {
		if err := CheckName(record.Name); err != nil {
			return nil, err
		}
	}
	unlock, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r.sweep() // an entry that cannot be removed does not prevent others
	if record.Name == "" {
		record.Name = r.freeName(record.Program)
	} else if err := r.taken(record.Name); err != nil {
		return nil, err
	}
	record.PID, record.Created = os.Getpid(), time.Now()
	if record.Birth, err = birthOf(record.PID); err != nil {
		return nil, err
	}
	e := &Entry{r: r, record: record}
	if err := e.make(newPrefix + record.Name); err != nil {
		e.close()
		return nil, errors.Join(err, r.root.RemoveAll(newPrefix+record.Name))
	}
	return e, nil
}

// resultRoom is the number of bytes that are reserved for the result in the lock file, so that End can write it to a full
// file system.
const resultRoom = 4096

// make makes the files of the entry in a folder, and then gives the folder its name. The caller holds the lock of the
// registry.
//
// systemd-tmpfiles(8) removes files in /tmp that have not been used for some days, but leaves out folders that another
// process has locked.
func (e *Entry) make(folder string) (err error) {
	if err := e.r.root.Mkdir(folder, 0o700); err != nil {
		return err
	}
	if e.dir, err = e.r.root.OpenRoot(folder); err != nil {
		return err
	}
	if e.folder, err = e.dir.Open("."); err != nil {
		return err
	}
	if _, err := tryLock(e.folder, syscall.LOCK_SH); err != nil {
		return err
	}
	if e.lock, err = e.dir.OpenFile(lockFile, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	if locked, err := tryLock(e.lock, syscall.LOCK_EX); err != nil || !locked {
		return errors.Join(err, errors.New("the lock of a new entry is held"))
	}
	if _, err := e.lock.WriteAt(bytes.Repeat([]byte{' '}, resultRoom), 0); err != nil {
		return err
	}
	if err := e.write(); err != nil {
		return err
	}
	return e.r.root.Rename(folder, e.record.Name)
}

// taken returns an *Error if an entry has the name.
func (r *Registry) taken(name string) error {
	g, err := r.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer g.Close()
	if g.Running() {
		return &Error{fmt.Sprintf("a guest with the name %s runs", name), "use another name, or end it: loam stop " + name}
	}
	return &Error{fmt.Sprintf("a guest with the name %s has ended, and its output is kept", name), "use another name, or remove it: loam rm " + name}
}

// freeName returns a name that no entry has: the name of the program's file, and a random number.
func (r *Registry) freeName(program string) string {
	base := readable(program)
	for {
		var b [3]byte
		rand.Read(b[:])
		name := base + "-" + hex.EncodeToString(b[:])
		if _, err := r.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
}

// readable returns the part of a program's name that identifies it: the last part of its path, without a version and
// an ending. Bytes that a name cannot have are left out.
func readable(program string) string {
	const most = 40
	if abs, err := filepath.Abs(program); err == nil && strings.HasPrefix(program, ".") {
		program = abs
	}
	program, _, _ = strings.Cut(program, "@")
	program = strings.TrimRight(program, "/")
	program = strings.TrimSuffix(program[strings.LastIndexByte(program, '/')+1:], ".go")
	program, _, _ = strings.Cut(program, ":")
	var b strings.Builder
	for _, c := range []byte(program) {
		if b.Len() < most && CheckName("x"+string(rune(c))) == nil && (b.Len() > 0 || CheckName(string(rune(c))) == nil) {
			b.WriteByte(c)
		}
	}
	if b.Len() == 0 {
		return "guest"
	}
	return b.String()
}

// write writes the record. Readers see the old one or the new one.
func (e *Entry) write() error {
	data, err := json.Marshal(stored{e.record, e.record.Birth})
	if err != nil {
		return err
	}
	const fresh = recordFile + ".new"
	if err := e.dir.WriteFile(fresh, data, 0o600); err != nil {
		return err
	}
	return e.dir.Rename(fresh, recordFile)
}

// Name returns the name of the guest.
func (e *Entry) Name() string { return e.record.Name }

// CopyOutput writes the stored output to w, for a guest that has not started.
func (e *Entry) CopyOutput(w io.Writer) error {
	r := &reader{dir: e.dir}
	defer r.close()
	all, err := r.rest()
	if err != nil {
		return err
	}
	_, err = w.Write(all)
	return err
}

// Start records that the program has started. After an error, the guest counts as not started.
func (e *Entry) Start() error {
	e.record.Started = time.Now()
	err := e.write()
	if err != nil {
		e.record.Started = time.Time{}
	}
	return err
}

// End records the end of the guest and closes the entry. It removes the entry, unless the guest is detached and has
// started. If only the removal fails, the result is recorded.
func (e *Entry) End(status int, reason string) error {
	defer e.close()
	err := e.writeResult(Result{status, reason, time.Now()})
	if e.record.Detached && !e.record.Started.IsZero() {
		return err
	}
	unlock, lerr := e.r.lock(context.Background())
	if lerr != nil { // a later Create removes the entry
		return errors.Join(err, lerr)
	}
	defer unlock()
	if !e.named() {
		return nil
	}
	return e.r.discard(e.record.Name)
}

// writeResult writes the result to the lock file. It leaves out the end of a reason that is too long for the reserved bytes.
func (e *Entry) writeResult(r Result) error {
	data, err := json.Marshal(r)
	for err == nil && len(data) > resultRoom {
		r.Reason = strings.ToValidUTF8(r.Reason[:len(r.Reason)/2], "")
		data, err = json.Marshal(r)
	}
	if err == nil {
		_, err = e.lock.WriteAt(data, 0)
	}
	return err
}

// named reports whether the name of the guest still belongs to this entry. It does not if another process has removed the folder.
// Another guest may have the name then.
func (e *Entry) named() bool {
	ours, err := e.folder.Stat()
	if err != nil {
		return false
	}
	there, err := e.r.root.Stat(e.record.Name)
	return err == nil && os.SameFile(ours, there)
}

// close closes the files of the entry, and so releases its lock.
func (e *Entry) close() {
	if e.lock != nil {
		e.lock.Close()
	}
	if e.folder != nil {
		e.folder.Close()
	}
	if e.dir != nil {
		e.dir.Close()
	}
}
