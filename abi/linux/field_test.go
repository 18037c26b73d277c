package linux

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// structure is a C structure and the functions of this package that encode and decode it.
type structure struct {
	headers string
	c       string // the C type
	size    int
	fields  string               // pairs GO:C of a field in Go and the same field in C
	new     func() reflect.Value // returns a new Go value that can be set
	put     func(reflect.Value, []byte)
	parse   func([]byte) reflect.Value // nil: this package only encodes the structure
}

// structureOf returns a structure with the functions of a Go type.
func structureOf[T any](headers, c string, size int, put func(*T, []byte), parse func([]byte) T, fields string) structure {
	s := structure{headers: headers, c: c, size: size, fields: fields}
	s.new = func() reflect.Value { return reflect.New(reflect.TypeFor[T]()).Elem() }
	if put != nil {
		s.put = func(v reflect.Value, b []byte) { put(v.Addr().Interface().(*T), b) }
	}
	if parse != nil {
		s.parse = func(b []byte) reflect.Value { return reflect.ValueOf(parse(b)) }
	}
	return s
}

// structures has every structure for which this package has an encoder or a decoder.
var structures = []structure{
	structureOf(timeHeaders, "struct timespec", SizeofTimespec, (*Timespec).Put, ParseTimespec, "Sec:tv_sec Nsec:tv_nsec"),
	structureOf(timeHeaders, "struct timeval", SizeofTimeval, (*Timeval).Put, ParseTimeval, "Sec:tv_sec Usec:tv_usec"),
	structureOf(timeHeaders, "struct utimbuf", SizeofUtimbuf, nil, ParseUtimbuf, "Actime:actime Modtime:modtime"),
	structureOf(timeHeaders, "struct itimerspec", SizeofItimerspec, (*Itimerspec).Put, ParseItimerspec,
		"Interval.Sec:it_interval.tv_sec Interval.Nsec:it_interval.tv_nsec Value.Sec:it_value.tv_sec Value.Nsec:it_value.tv_nsec"),
	structureOf(timeHeaders, "struct timex", SizeofTimex, (*Timex).Put, ParseTimex,
		`Modes:modes Offset:offset Freq:freq Maxerror:maxerror Esterror:esterror Status:status Constant:constant Precision:precision
		Tolerance:tolerance Time.Sec:time.tv_sec Time.Usec:time.tv_usec Tick:tick Ppsfreq:ppsfreq Jitter:jitter Shift:shift Stabil:stabil
		Jitcnt:jitcnt Calcnt:calcnt Errcnt:errcnt Stbcnt:stbcnt Tai:tai`),
	structureOf(fileHeaders, "struct stat", SizeofStat, (*Stat).Put, ParseStat,
		`Dev:st_dev Ino:st_ino Nlink:st_nlink Mode:st_mode UID:st_uid GID:st_gid Rdev:st_rdev Size:st_size Blksize:st_blksize
		Blocks:st_blocks Atime.Sec:st_atim.tv_sec Atime.Nsec:st_atim.tv_nsec Mtime.Sec:st_mtim.tv_sec Mtime.Nsec:st_mtim.tv_nsec
		Ctime.Sec:st_ctim.tv_sec Ctime.Nsec:st_ctim.tv_nsec`),
	structureOf(fileHeaders, "struct statx", SizeofStatx, (*Statx).Put, nil,
		`Mask:stx_mask Blksize:stx_blksize Nlink:stx_nlink UID:stx_uid GID:stx_gid Mode:stx_mode Ino:stx_ino Size:stx_size
		Blocks:stx_blocks
		Atime.Sec:stx_atime.tv_sec Atime.Nsec:stx_atime.tv_nsec Ctime.Sec:stx_ctime.tv_sec Ctime.Nsec:stx_ctime.tv_nsec
		Mtime.Sec:stx_mtime.tv_sec Mtime.Nsec:stx_mtime.tv_nsec RdevMajor:stx_rdev_major RdevMinor:stx_rdev_minor DevMajor:stx_dev_major DevMinor:stx_dev_minor`),
	structureOf(fileHeaders, "struct statfs", SizeofStatfs, (*Statfs).Put, nil,
		`Type:f_type Bsize:f_bsize Blocks:f_blocks Bfree:f_bfree Bavail:f_bavail Files:f_files Ffree:f_ffree Namelen:f_namelen
		Frsize:f_frsize Flags:f_flags`),
	structureOf(fileHeaders, "struct flock", SizeofFlock, (*Flock).Put, ParseFlock,
		"Type:l_type Whence:l_whence Start:l_start Len:l_len PID:l_pid"),
	structureOf(fileHeaders, "struct open_how", SizeofOpenHow, nil, ParseOpenHow, "Flags:flags Mode:mode Resolve:resolve"),
	structureOf(fileHeaders, "struct pollfd", SizeofPollFD, (*PollFD).Put, ParsePollFD, "FD:fd Events:events Revents:revents"),
	structureOf(fileHeaders, "struct epoll_event", SizeofEpollEvent, (*EpollEvent).Put, ParseEpollEvent, "Events:events Data:data.u64"),
	structureOf("testdata/newer.h", "struct procmap_query", SizeofProcmapQuery, (*ProcmapQuery).Put, ParseProcmapQuery,
		`Size:size QueryFlags:query_flags QueryAddr:query_addr Start:vma_start End:vma_end Flags:vma_flags PageSize:vma_page_size Offset:vma_offset
		Inode:inode Major:dev_major Minor:dev_minor NameSize:vma_name_size BuildIDSize:build_id_size NameAddr:vma_name_addr BuildIDAddr:build_id_addr`),
	structureOf("asm/termbits.h", "struct termios2", SizeofTermios2, (*Termios).Put, ParseTermios,
		`Input:c_iflag Output:c_oflag Control:c_cflag Local:c_lflag Discipline:c_line InSpeed:c_ispeed OutSpeed:c_ospeed `+
			"Chars.0:c_cc[0] Chars.1:c_cc[1] Chars.4:c_cc[VEOF] Chars.18:c_cc[NCCS-1]"),
	structureOf("asm/termbits.h", "struct termios", SizeofTermios, (*Termios).Put, ParseTermios,
		"Input:c_iflag Output:c_oflag Control:c_cflag Local:c_lflag Discipline:c_line Chars.0:c_cc[VINTR] Chars.18:c_cc[NCCS-1]"),
	structureOf("asm/termios.h", "struct winsize", SizeofWinsize, (*Winsize).Put, ParseWinsize,
		"Rows:ws_row Columns:ws_col X:ws_xpixel Y:ws_ypixel"),
	structureOf(socketHeaders, "struct iovec", SizeofIovec, nil, ParseIovec, "Base:iov_base Len:iov_len"),
	structureOf(socketHeaders, "struct msghdr", SizeofMsghdr, nil, ParseMsghdr,
		`Name:msg_name Namelen:msg_namelen Iov:msg_iov Iovlen:msg_iovlen Control:msg_control Controllen:msg_controllen
		Flags:msg_flags`),
	structureOf(socketHeaders, "struct cmsghdr", SizeofCmsghdr, func(h *Cmsghdr, b []byte) { copy(b, h.Append(nil)) }, ParseCmsghdr,
		"Len:cmsg_len Level:cmsg_level Type:cmsg_type"),
	structureOf(socketHeaders, "struct sock_fprog", SizeofSockFprog, nil, ParseSockFprog, "Len:len Filter:filter"),
	structureOf(processHeaders, "struct rlimit", SizeofRlimit, (*Rlimit).Put, ParseRlimit, "Cur:rlim_cur Max:rlim_max"),
	structureOf(processHeaders, "struct utsname", SizeofUtsname, (*Utsname).Put, nil,
		"Sysname:sysname Nodename:nodename Release:release Version:version Machine:machine Domainname:domainname"),
	structureOf(processHeaders, "struct __user_cap_header_struct", SizeofCapHeader, (*CapHeader).Put, ParseCapHeader,
		"Version:version PID:pid"),
	structureOf(processHeaders, "struct { struct __user_cap_data_struct low, high; }", SizeofCapData, (*CapData).Put, ParseCapData,
		`Effective:low.effective,high.effective Permitted:low.permitted,high.permitted
		Inheritable:low.inheritable,high.inheritable`),
	structureOf(processHeaders, "struct vfs_ns_cap_data", SizeofVfsCapData, nil, ParseVfsCapData,
		`Magic:magic_etc Permitted:data[0].permitted,data[1].permitted Inheritable:data[0].inheritable,data[1].inheritable
		RootID:rootid`),
	structureOf("signal.h", "stack_t", SizeofSigStack, (*SigStack).Put, ParseSigStack, "Addr:ss_sp Flags:ss_flags Size:ss_size"),
	structureOf("asm/signal.h", "struct sigaction", SizeofKernelSigaction, (*KernelSigaction).Put, ParseKernelSigaction,
		"Handler:sa_handler Flags:sa_flags Restorer:sa_restorer Mask:sa_mask"),
}

// patterns are the values that a field gets. The first has all bits set. The others differ in each byte, with and without the
// sign, so that a field that is too short or at another offset is noticed.
var patterns = [...]uint64{1<<64 - 1, 0x8182838485868788, 0x0123456789abcdef}

// eachField calls f for the fields of a structure, with the field in Go and the C code that sets it to the pattern p.
func (s *structure) eachField(p uint64, f func(path, code string)) {
	for _, pair := range strings.Fields(s.fields) {
		path, inC, _ := strings.Cut(pair, ":")
		code := fmt.Sprintf("s.%[1]s = (typeof(s.%[1]s))%#xull;", inC, p)
		switch low, high, halves := strings.Cut(inC, ","); {
		case halves:
			code = fmt.Sprintf("s.%s = (unsigned)%#xull; s.%s = %#xull;", low, p, high, p>>32)
		case s.c == "struct utsname":
			code = fmt.Sprintf("strcpy(s.%s, %q);", inC, textOf(p))
		}
		f(path, code)
	}
}

// textOf returns the pattern p for a field that is a string: the longest string that fits for the first pattern.
func textOf(p uint64) string {
	if p == patterns[0] {
		return strings.Repeat("x", NameMax)
	}
	return strconv.FormatUint(p, 36)
}

// set sets a field to a pattern.
func set(v reflect.Value, path string, p uint64) {
	for name := range strings.SplitSeq(path, ".") {
		if v.Kind() == reflect.Array {
			i, _ := strconv.Atoi(name)
			v = v.Index(i)
		} else {
			v = v.FieldByName(name)
		}
	}
	switch {
	case v.Kind() == reflect.String:
		v.SetString(textOf(p))
	case v.CanInt():
		unused := 64 - v.Type().Bits()
		v.SetInt(int64(p) << unused >> unused)
	default:
		unused := 64 - v.Type().Bits()
		v.SetUint(p << unused >> unused)
	}
}

// program returns C code that prints the bytes of the structure with one field set, for each pattern and each field.
func (s *structure) program() string {
	var body strings.Builder
	for _, p := range patterns {
		s.eachField(p, func(_, code string) {
			fmt.Fprintf(&body, "{ %s s; memset(&s, 0, sizeof s); %s ", s.c, code)
			body.WriteString(`for (size_t i = 0; i < sizeof s; i++) printf("%02x", ((unsigned char *)&s)[i]); printf("\n"); }` + "\n")
		})
	}
	return body.String()
}

// structuresInC runs the programs of all structures, and returns the bytes that each prints, by the C type.
func structuresInC(t *testing.T) map[string][][]byte {
	t.Helper()
	all, byHeaders := map[string][][]byte{}, map[string][]*structure{}
	for i := range structures {
		s := &structures[i]
		byHeaders[s.headers] = append(byHeaders[s.headers], s)
	}
	for headers, list := range byHeaders {
		var body strings.Builder
		for _, s := range list {
			body.WriteString(s.program())
		}
		lines := strings.Fields(compileAndRun(t, strings.Fields(headers), body.String()))
		for _, s := range list {
			n := len(patterns) * len(strings.Fields(s.fields))
			for _, line := range lines[:n] {
				b, err := hex.DecodeString(line)
				if err != nil || len(b) != s.size {
					t.Fatalf("%s: %d bytes in C, %d here (%v)", s.c, len(b), s.size, err)
				}
				all[s.c] = append(all[s.c], b)
			}
			lines = lines[n:]
		}
	}
	return all
}

// TestFields sets one field at a time, in C and in Go. Both must have the same bytes, encoded into memory that is not zero, and
// the decoder must return the same value.
func TestFields(t *testing.T) {
	all := structuresInC(t)
	for _, s := range structures {
		t.Run(s.c, func(t *testing.T) {
			inC, n := all[s.c], 0
			used := make([]byte, s.size) // bits that belong to fields
			for _, p := range patterns {
				s.eachField(p, func(path, code string) {
					want, v := inC[n], s.new()
					n++
					set(v, path, p)
					if got := bytes.Repeat([]byte{0xee}, s.size); s.put != nil {
						if s.put(v, got); !bytes.Equal(got, want) {
							t.Errorf("%s encodes as %x\nin C it is %x", code, got, want)
						}
					}
					if s.parse != nil {
						if got := s.parse(want); !reflect.DeepEqual(got.Interface(), v.Interface()) {
							t.Errorf("%s decodes as %+v, want %+v", code, got, v)
						}
					}
					for i, b := range want {
						used[i] |= b
					}
				})
			}
			if s.put != nil && s.parse != nil && !strings.Contains(s.fields, "Chars") {
				s.checkRandom(t, used)
			}
		})
	}
}

// checkRandom decodes random bytes and encodes them again. Only the bits that belong to no field may change: they become 0.
func (s *structure) checkRandom(t *testing.T, used []byte) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		in, want, got := make([]byte, s.size), make([]byte, s.size), make([]byte, s.size)
		for i := range in {
			in[i] = byte(rng.Uint32())
			want[i] = in[i] & used[i]
		}
		v := s.new()
		v.Set(s.parse(in))
		if s.put(v, got); !bytes.Equal(got, want) {
			t.Fatalf("%x\nbecomes %x\nwant    %x", in, got, want)
		}
	}
}

// declaredLayouts returns the types of this package that have a method Put or Append, or a function Parse.
func declaredLayouts(t *testing.T) (names []string) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || strings.HasSuffix(name, "_test.go") {
				continue
			}
			parsed, isParser := strings.CutPrefix(fn.Name.Name, "Parse")
			switch {
			case isParser:
				names = append(names, parsed)
			case fn.Recv != nil && (fn.Name.Name == "Put" || fn.Name.Name == "Append"):
				receiver := fn.Recv.List[0].Type
				if pointer, ok := receiver.(*ast.StarExpr); ok {
					receiver = pointer.X
				}
				names = append(names, receiver.(*ast.Ident).Name)
			}
		}
	}
	return names
}

// Every structure of this package with a method Put, or with a function that decodes it, is in the table.
func TestEveryStructureIsTested(t *testing.T) {
	tested := map[string]bool{}
	for _, s := range structures {
		tested[s.new().Type().Name()] = true
	}
	for _, name := range declaredLayouts(t) {
		if !tested[name] {
			t.Errorf("%s is not in the table of structures", name)
		}
	}
}
