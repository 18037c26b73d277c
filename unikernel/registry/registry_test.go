package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// newRegistry returns a registry in a temporary folder.
func newRegistry(t *testing.T) *Registry {
	t.Helper()
	r, err := openAt(filepath.Join(t.TempDir(), "loam"), os.Geteuid())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// create makes an entry, which the test ends.
func create(t *testing.T, r *Registry, record Record) *Entry {
	t.Helper()
	e, err := r.Create(t.Context(), record)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// states returns the names and states of all guests.
func states(t *testing.T, r *Registry) string {
	t.Helper()
	list, err := r.List()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, g := range list {
		all = append(all, g.Name+" "+string(g.State))
	}
	return strings.Join(all, ", ")
}

// wants fails the test unless err is an *Error whose text begins with what.
func wants(t *testing.T, err error, what string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.What != what || e.Next == "" {
		t.Errorf("the error is %v, want %q and what to do", err, what)
	}
}

// files returns the names in the folder of a registry.
func files(t *testing.T, r *Registry) string {
	t.Helper()
	f, err := r.root.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// A guest in the foreground is in the list from its creation to its end, and leaves nothing.
func TestForeground(t *testing.T) {
	r := newRegistry(t)
	e := create(t, r, Record{Name: "a", Program: "./a"})
	if got := states(t, r); got != "a starting" {
		t.Error(got)
	}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	g, err := r.Find("a")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if g.State != Running || g.PID != os.Getpid() || g.Birth == 0 || g.Program != "./a" || g.Started.IsZero() {
		t.Errorf("%+v", g)
	}
	wants(t, g.Print(t.Context(), io.Discard, Reading{Tail: -1}), "the output of a is not stored, because it runs in the foreground")
	wants(t, r.Remove(t.Context(), "a"), "a runs")
	if err := e.End(3, "no"); err != nil {
		t.Fatal(err)
	}
	if got := files(t, r); got != ".lock" {
		t.Errorf("left behind: %s", got)
	}
	// the result can be read although the entry is removed
	if result, err := g.Wait(t.Context()); err != nil || result.Status != 3 || result.Reason != "no" {
		t.Errorf("%+v, %v", result, err)
	}
	_, err = r.Find("a")
	wants(t, err, "there is no guest with the name a")
}

// A detached guest that has started keeps its entry and its name until it is removed.
func TestDetached(t *testing.T) {
	r := newRegistry(t)
	e := create(t, r, Record{Name: "a", Detached: true})
	e.Start()
	_, err := r.Create(t.Context(), Record{Name: "a"})
	wants(t, err, "a guest with the name a runs")
	e.End(0, "")
	_, err = r.Create(t.Context(), Record{Name: "a"})
	wants(t, err, "a guest with the name a has ended, and its output is kept")
	if got := states(t, r); got != "a exited" {
		t.Error(got)
	}
	if err := r.Remove(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	wants(t, r.Remove(t.Context(), "a"), "there is no guest with the name a")
	failed := create(t, r, Record{Name: "a", Detached: true})
	failed.End(1, "it does not start")
	if got := files(t, r); got != ".lock" {
		t.Errorf("left behind by a guest that did not start: %s", got)
	}
}

// If the loam command is killed, its lock is released without a result. The guest is then lost: a detached guest is kept
// until it is removed, others are removed by the next Create. So are entries that were not complete.
func TestStale(t *testing.T) {
	r := newRegistry(t)
	for _, record := range []Record{{Name: "foreground"}, {Name: "kept", Detached: true}, {Name: "unstarted", Detached: true}} {
		e := create(t, r, record)
		if record.Name != "unstarted" {
			e.Start()
		}
		defer e.close()
	}
	if got := states(t, r); got != "foreground running, kept running, unstarted starting" {
		t.Error(got)
	}
	for _, name := range []string{"foreground", "kept", "unstarted"} { // copies have the same files, but no lock
		copied := filepath.Join(r.places[0], name+"-copy")
		if err := os.CopyFS(copied, os.DirFS(filepath.Join(r.places[0], name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".new-x", ".old-x", "empty"} {
		if err := r.root.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const all = "foreground running, foreground-copy lost, kept running, kept-copy lost, unstarted starting, unstarted-copy lost"
	if got := states(t, r); got != all {
		t.Error(got)
	}
	g, err := r.Find("kept-copy")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	_, err = g.Wait(t.Context())
	wants(t, err, "the loam command of kept-copy was killed, so the exit status is not known")
	if err := g.Stop(t.Context(), time.Hour, syscall.SIGKILL); err != nil {
		t.Errorf("a lost guest is stopped: %v", err)
	}
	create(t, r, Record{Name: "new"}).End(0, "")
	if got := states(t, r); got != "foreground running, kept running, kept-copy lost, unstarted starting" {
		t.Error(got)
	}
	if got := files(t, r); strings.Contains(got, "-x") || strings.Contains(got, "empty") {
		t.Error(got)
	}
	if err := r.Remove(t.Context(), "kept-copy"); err != nil {
		t.Error(err)
	}
}

// Of many attempts to use a name at the same time, one succeeds. In the meantime, others list the guests.
func TestNameRace(t *testing.T) {
	r := newRegistry(t)
	for round := range 20 {
		var group sync.WaitGroup
		results := make(chan *Entry, 16)
		for range cap(results) {
			group.Go(func() {
				e, err := r.Create(t.Context(), Record{Name: "a", Detached: round%2 == 0})
				if err != nil {
					wants(t, err, "a guest with the name a runs")
				}
				results <- e
				if _, err := r.List(); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		close(results)
		var winners []*Entry
		for e := range results {
			if e != nil {
				winners = append(winners, e)
			}
		}
		if len(winners) != 1 {
			t.Fatalf("%d attempts succeeded", len(winners))
		}
		if err := winners[0].End(0, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// Guests without a name get different ones, which name their program.
func TestFreeName(t *testing.T) {
	r := newRegistry(t)
	for program, want := range map[string]string{
		"./server": "server-", "main.go": "main-", "example.org/cmd/x@v1.2.3": "x-", "/usr/bin/redis-server": "redis-server-",
		"redis.tar:7": "redis.tar-", "": "guest-", "/": "guest-", "-v": "v-", "a\x1b[2Jb": "a2Jb-", ".": "registry-",
		strings.Repeat("x", 200): strings.Repeat("x", 40) + "-",
	} {
		e := create(t, r, Record{Program: program})
		if got := e.Name(); !strings.HasPrefix(got, want) || len(got) != len(want)+6 || CheckName(got) != nil {
			t.Errorf("%q has the name %q, want %s and six digits", program, got, want)
		}
		e.End(0, "")
	}
}

// Stop sends no signal to a process that has the process ID of the record, but is not the loam command.
func TestReusedPID(t *testing.T) {
	r := newRegistry(t)
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	e := create(t, r, Record{Name: "a"})
	defer e.End(0, "")
	for _, pid := range []int{other.Process.Pid, 1 << 30, 0} {
		e.record.PID = pid
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		g, err := r.Find("a")
		if err != nil {
			t.Fatal(err)
		}
		what := "a runs, but its loam command is not visible here"
		if pid == 0 {
			what = "the record of a is damaged"
		}
		wants(t, g.Stop(t.Context(), 0, syscall.SIGKILL), what)
		g.Close()
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other process: %v", err)
	}
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", other.Process.Pid))
	if err != nil || bytes.Contains(state, []byte(") Z ")) {
		t.Errorf("the other process was killed: %s, %v", state, err)
	}
}

// A damaged record does not hide other guests, and can be removed.
func TestDamagedRecord(t *testing.T) {
	r := newRegistry(t)
	e := create(t, r, Record{Name: "a", Detached: true})
	e.Start()
	if err := e.dir.WriteFile(recordFile, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := states(t, r); got != "a starting" {
		t.Error(got)
	}
	e.close()
	if err := r.Remove(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// A canceled context ends every wait.
func TestCanceled(t *testing.T) {
	r := newRegistry(t)
	e := create(t, r, Record{Name: "a", Detached: true})
	e.Start()
	defer e.End(0, "")
	g, err := r.Find("a")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := g.Print(ctx, io.Discard, Reading{Follow: true}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	unlock, err := r.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := r.Create(ctx, Record{Name: "b"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestExposes(t *testing.T) {
	r := newRegistry(t)
	folder := filepath.Dir(r.places[0])
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/": true, folder: true, folder + "/loam": true, folder + "/loam/.lock": true, folder + "/loam/none": true, link: true, link + "/loam": true,
		folder + "/loa": false, folder + "/loam2": false, t.TempDir(): false, "/none": false,
	} {
		if got := r.Exposes(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func FuzzBirth(f *testing.F) {
	f.Add([]byte("1 (a) b) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 7 8"))
	f.Add([]byte("1 (a"))
	f.Fuzz(func(t *testing.T, stat []byte) { parseBirth(stat) })
}

func TestBirth(t *testing.T) {
	if n, err := parseBirth([]byte("1 (a) b) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 7 8\n")); n != 99 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"name":"a","pid":7,"birth":9,"ports":[{"host":"80","guest":80,"protocol":"tcp"}]}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, data []byte) { parseRecord(data) })
}

// No name that CheckName accepts is a path, or a file of the registry itself.
func FuzzCheckName(f *testing.F) {
	for _, name := range []string{"a", "A.b-c_9", "", ".", "..", ".lock", "-a", "a/b", "a\x00", strings.Repeat("a", 64)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if CheckName(name) != nil {
			return
		}
		if !filepath.IsLocal(name) || filepath.Base(name) != name || name[0] == '.' || name[0] == '-' || len(name) > MaxName {
			t.Errorf("%q is accepted", name)
		}
	})
}

// End does not remove the entry of another guest that has got the name, because the folder of the first was removed.
func TestNameOfRemovedFolder(t *testing.T) {
	r := newRegistry(t)
	first := create(t, r, Record{Name: "a"})
	if err := r.root.RemoveAll("a"); err != nil {
		t.Fatal(err)
	}
	second := create(t, r, Record{Name: "a"})
	if err := first.End(0, ""); err != nil {
		t.Error(err)
	}
	if got := states(t, r); got != "a starting" {
		t.Errorf("%q", got)
	}
	if err := second.End(0, ""); err != nil {
		t.Error(err)
	}
	if got := files(t, r); got != ".lock" {
		t.Error(got)
	}
}

// A folder of a guest that runs is locked, so systemd-tmpfiles leaves it out.
func TestFolderIsLocked(t *testing.T) {
	r := newRegistry(t)
	e := create(t, r, Record{Name: "a"})
	f, err := r.root.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if locked, err := tryLock(f, syscall.LOCK_EX); locked || err != nil {
		t.Errorf("%v, %v", locked, err)
	}
	e.End(0, "")
	if locked, err := tryLock(f, syscall.LOCK_EX); !locked || err != nil {
		t.Errorf("after the end: %v, %v", locked, err)
	}
}

// A result needs no new space of the file system, however long its reason is.
func TestResultInReservedSpace(t *testing.T) {
	r := newRegistry(t)
	e := create(t, r, Record{Name: "a", Detached: true})
	e.Start()
	if err := e.End(3, strings.Repeat("ä\x01", resultRoom)); err != nil {
		t.Error(err)
	}
	g, err := r.Find("a")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if st, err := g.lock.Stat(); err != nil || st.Size() != resultRoom || g.State != Exited || g.Result.Status != 3 || g.Result.Reason == "" {
		t.Errorf("%v, %+v, %+v", err, st, g)
	}
}

// A guest whose start cannot be recorded counts as not started.
func TestStartIsNotRecorded(t *testing.T) {
	r := newRegistry(t)
	e := create(t, r, Record{Name: "a", Detached: true})
	if err := e.dir.Mkdir(recordFile+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(); err == nil {
		t.Error("no error")
	}
	e.End(1, "")
	if got := files(t, r); got != ".lock" {
		t.Error(got)
	}
}

// A command that is stopped while it holds the lock does not block others for ever.
func TestLockIsHeld(t *testing.T) {
	r := newRegistry(t)
	unlock, err := r.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	defer func(before time.Duration) { lockTime = before }(lockTime)
	lockTime = 10 * time.Millisecond
	if _, err := r.Create(t.Context(), Record{Name: "a"}); err == nil || !strings.Contains(err.Error(), "another loam command holds the lock") {
		t.Error(err)
	}
}

// An entry that can neither be read nor removed does not prevent others, and List still returns them.
func TestUnusableEntry(t *testing.T) {
	r := newRegistry(t)
	if err := os.MkdirAll(filepath.Join(r.places[0], "x", lockFile), 0o700); err != nil { // flock works on folders, too
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(r.places[0], "x", recordFile), 0o700); err != nil {
		t.Fatal(err)
	}
	a := create(t, r, Record{Name: "a"})
	list, err := r.List()
	if len(list) != 1 || list[0].Name != "a" || err == nil || !strings.Contains(err.Error(), "the guest x cannot be read") {
		t.Errorf("%v, %v", list, err)
	}
	if err := a.End(0, ""); err != nil {
		t.Error(err)
	}
}
