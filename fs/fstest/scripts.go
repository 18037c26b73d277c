package fstest

// scripts are tests in the language of command.go. They encode the rules of POSIX and Linux.
var scripts = []struct{ name, script string }{
	{"files hold what is written", `
		write a hello
		read a hello
		write a -                     # O_TRUNC
		read a -
		append a one
		append a two
		read a onetwo
		stat a type=file mode=0644 links=1 size=6 uid=0 gid=0
		read b -> ENOENT
		read a/b - -> ENOTDIR
		write / x -> EISDIR
		write a/ x -> EISDIR
	`},
	{"open flags", `
		open f a r -> ENOENT
		open f a rw,create,excl 0600
		open g a rw,create,excl -> EEXIST
		stat a mode=0600
		fwrite f hello
		fseek f 1
		fread f ello
		fread f -
		open g a r
		fwrite g x -> EBADF
		fread g hello
		open w a w
		fread w x -> EBADF
		open d a r,dir -> ENOTDIR
		mkdir dir
		open d dir r,dir
		fread d x -> EISDIR
		open d dir w -> EISDIR
		open d dir r,create -> EISDIR
		open d dir/ r,create -> EISDIR
		open d dir/x/ w,create -> EISDIR
		symlink a/ slash
		open d slash w,create -> EISDIR
		open d new r,create,dir -> EINVAL
		open t a w,trunc
		read a -
		fwrite f again                # at the offset of f, behind a hole
		stat a size=10
		open p a path
		fread p x -> EBADF
		fseek p 0 -> EBADF
	`},
	{"append writes at the end, always", `
		open f a rw,create,append
		fwrite f one
		fseek f 0
		fwrite f two
		read a onetwo
		fseek f 0
		fread f onetwo
	`},
	{"seek", `
		write a 0123456789
		open f a r
		fseek f 3
		fread f 345
		fseek f 1 1
		fread f 78
		fseek f -2 2
		fread f 89
		fseek f -1 0 -> EINVAL
		fseek f 0 9 -> EINVAL
		fseek f 9 3                   # SEEK_DATA
		fseek f 10 3 -> ENXIO
		fseek f 4 4                   # SEEK_HOLE: at the end
		fread f -
		fseek f 100
		fread f -
	`},
	{"truncate", `
		write a 0123456789
		truncate a 3
		read a 012
		truncate a 5
		open f a rw
		fseek f 3
		fwrite f x
		fseek f 0
		fread f 012x
		fcut f 0
		read a -
		stat a size=0 blocks=0
		truncate a -1 -> EINVAL
		mkdir d
		truncate d 0 -> EISDIR
		open r a r
		fcut r 0 -> EINVAL
	`},
	{"directories", `
		mkdir a
		mkdir a -> EEXIST
		mkdir a/ -> EEXIST
		mkdir b/c -> ENOENT
		mkdir b/                      # a slash behind the name of a directory to be
		mkdir / -> EEXIST
		mkdir . -> EEXIST
		mkdir a/.. -> EEXIST
		stat / links=4
		stat a links=2 type=dir mode=0755
		mkdir a/c 01777
		stat a/c mode=01755            # the umask leaves the sticky bit
		stat a links=3
		write a/f x
		stat a links=3
		ls / a,b
		ls a c,f
		ls a/f -> ENOTDIR
		rmdir a -> ENOTEMPTY
		rmdir a/f -> ENOTDIR
		rm a -> EISDIR
		rm a/ -> EISDIR
		rm a/f/ -> ENOTDIR
		rm a/f
		rmdir a/c
		rmdir a/.. -> ENOTEMPTY
		rmdir a/. -> EINVAL
		rmdir / -> EBUSY
		rmdir nothing -> ENOENT
		rmdir a
		rmdir b/
		ls /
		stat / links=2
	`},
	{"a removed directory cannot be filled or listed", `
		mkdir a
		cd a
		rmdir ../a
		mkdir b -> ENOENT
		write f x -> ENOENT
		symlink x l -> ENOENT
		write /g x
		link /g g -> ENOENT
		mv /g g -> ENOENT
		pwd x -> ENOENT
		ls . -> ENOENT
		cd ..
		pwd /
	`},
	{"names", `
		write @255 x
		write @256 x -> ENAMETOOLONG
		write ... x
		write ümlaut x
		read //...// x -> ENOTDIR
		read //... x
		read ./././... x
		read ümlaut x
	`},
	{"walking", `
		mkdir a
		mkdir a/b
		cd a/b
		pwd /a/b
		write ../../f x
		read /f x
		cd ..
		pwd /a
		cd /
		cd ../../..
		pwd /
		mkdir a/c
		cd a/c
		mv ../../a ../../d
		pwd /d/c                      # a directory that moved still knows its way
		cd /f -> ENOTDIR
		cd /none -> ENOENT
		read /f/.. - -> ENOTDIR
		read /f/. - -> ENOTDIR
	`},
	{"symbolic links", `
		mkdir d
		write d/f hello
		symlink d/f l
		read l hello
		readlink l d/f
		readlink d/f x -> EINVAL
		lstat l type=link size=3 mode=0777
		stat l type=file size=5
		symlink f d/short
		read d/short hello
		symlink /d/f d/full
		cd d
		read full hello
		cd /
		symlink d dir
		read dir/f hello
		ls dir/ f,full,short
		lstat dir/ type=dir           # the slash follows it
		symlink d dir -> EEXIST
		symlink x none/y -> ENOENT
		rm l
		read d/f hello
		rm dir/ -> ENOTDIR
		rmdir dir -> ENOTDIR
		rmdir dir/ -> ENOTDIR
		mv dir/ x -> ENOTDIR
		rm dir
		symlink nowhere dangling
		read dangling x -> ENOENT
		open f dangling w,create,excl -> EEXIST
		write dangling new            # makes what the link names
		read nowhere new
		mkdir dangling -> EEXIST
		open f dangling r,nofollow -> ELOOP
		open f dangling path,nofollow
	`},
	{"symbolic links that never end", `
		symlink self self
		read self x -> ELOOP
		lstat self type=link
		symlink b a
		symlink a b
		read a x -> ELOOP
		symlink .. up
		read up/up/up/up/self x -> ELOOP
		symlink x/../none/f c
		read c x -> ENOENT
	`},
	{"hard links", `
		write a hello
		link a b
		stat a links=2
		stat b links=2
		append b more
		read a hellomore
		rm a
		stat b links=1
		read b hellomore
		link b b -> EEXIST
		link none c -> ENOENT
		mkdir d
		link d e -> EPERM
		link b d/b
		symlink b s
		link s t                      # the link itself, not what it names
		readlink t b
	`},
	{"rename", `
		write a one
		mv a b
		read a x -> ENOENT
		read b one
		write c two
		mv b c
		read c one
		mv c c
		link c d
		mv c d                        # two names of one file: nothing happens
		ls / c,d
		mkdir dir
		mv c dir/e
		read dir/e one
		mv none x -> ENOENT
		mv d none/x -> ENOENT
		mv d dir -> EISDIR
		mv dir d -> ENOTDIR
		mv d/ x -> ENOTDIR
		mkdir dir/sub
		mv dir dir/sub/x -> EINVAL
		mv dir dir/sub -> EINVAL
		mkdir empty
		mv empty dir -> ENOTEMPTY
		mv dir/sub empty
		ls / d,dir,empty
		stat dir links=2
		mv . x -> EBUSY
		mv dir/.. x -> EBUSY
		mv d / -> EBUSY
		mvnew d dir/e -> EEXIST
		mvnew d dir/f
		read dir/f one
	`},
	{"exchange", `
		write a one
		mkdir d
		write d/b two
		exchange a d/b
		read a two
		read d/b one
		exchange a none -> ENOENT
		exchange a d
		read d two
		read a/b one
		stat / links=3
		mkdir a/c
		exchange a a/c -> EINVAL
		exchange a/c a -> EINVAL
		exchange a/c d
		stat / links=4
		stat a links=2
		read a/c two
		cd d
		pwd /d
	`},
	{"permissions", `
		chmod / 0777
		umask 0
		write secret x 0600
		write open x 0644
		mkdir closed 0700
		write closed/f x 0666
		mkdir list 0444
		write list/f x
		as 1000:100
		read secret x -> EACCES
		read open x
		append open x -> EACCES
		read closed/f x -> EACCES
		ls closed -> EACCES
		ls list f
		read list/f x -> EACCES
		write list/g x -> EACCES
		write mine x 0400
		read mine x
		append mine x -> EACCES
		chmod mine 0200
		append mine y
		read mine xy -> EACCES
		stat mine uid=1000 gid=100
		chmod open 0666 -> EPERM
		chown mine 1001 -> EPERM
		chown mine 1000:100
		chown mine 1000:101 -> EPERM
		truncate open 0 -> EACCES
		access open r
		access open w -> EACCES
		access open x -> EACCES
		link secret mine2 -> EPERM
		as 1001:100
		chmod mine 0777 -> EPERM
		as 0
		read mine xy
		access mine rw
		access mine x -> EACCES        # nobody may execute it, so neither may user 0
		chmod mine 0010
		access mine x
	`},
	{"the class that fits decides, even if another would allow", `
		umask 0
		write a x 0077
		chown a 1000:100
		as 1000:100
		read a x -> EACCES
		as 1001:100
		read a x
		as 1001:101:100
		read a x
		as 0
		chmod a 0707
		as 1001:100
		read a x -> EACCES
		as 1001:101
		read a x
	`},
	{"the sticky bit", `
		umask 0
		mkdir tmp 01777
		as 1000:100
		write tmp/a x
		mkdir tmp/d 0777
		as 1001:101
		rm tmp/a -> EPERM
		mv tmp/a tmp/b -> EPERM
		rmdir tmp/d -> EPERM
		write tmp/c x
		mv tmp/c tmp/a -> EPERM
		exchange tmp/c tmp/a -> EPERM
		as 1000
		rm tmp/a
		as 0
		rm tmp/c
	`},
	{"set-group-ID directories hand their group on", `
		umask 0
		mkdir d 0777
		chown d 0:55
		chmod d 02777
		as 1000:100
		write d/f x
		mkdir d/e
		stat d/f uid=1000 gid=55
		stat d/e gid=55 mode=02755
	`},
	{"chown takes set-user-ID away", `
		umask 0
		write a x
		chmod a 06755
		chown a 1:1
		stat a mode=0755 uid=1 gid=1
		chmod a 06745
		chown a 2:2
		stat a mode=02745
	`},
	{"the umask", `
		umask 027
		write a x 0666
		mkdir d 0777
		stat a mode=0640
		stat d mode=0750
		umask 0777
		open f b rw,create 0666       # what the mode forbids counts from the next open on
		fwrite f x
		stat b mode=00
	`},
	{"files of other types", `
		mknod fifo 0010644
		mknod sock 0140600
		mknod null 0020666 0x103
		mknod plain 0100644
		mknod plain2 0644
		stat fifo type=fifo mode=0644
		stat sock type=socket
		stat null type=char
		stat plain2 type=file
		open f sock r -> ENXIO
		mknod d 0040755 -> EPERM
		mknod l 0120755 -> EINVAL
		mknod fifo 0010644 -> EEXIST
		truncate fifo 0 -> EINVAL
		as 1000
		mknod null2 0020666 0x103 -> EACCES
		as 0
		chmod / 0777
		as 1000
		mknod null2 0020666 0x103 -> EPERM
		mknod fifo2 0010644
	`},
	{"files without a name", `
		open t . rw,dir,tmp 0600
		fwrite t x
		ls /
		mkdir d
		flink t d -> EEXIST
		flink t a
		flink t d/b
		read a x
		stat a mode=0600 links=2 size=1
		rm a
		rm d/b
		flink t c -> ENOENT
		fseek t 0
		fread t x
		close t
		open t d w,dir,tmp,excl
		flink t a -> ENOENT
		open t . r,dir,tmp -> EINVAL
		open t . rw,tmp -> EINVAL
		open t . rw,dir,tmp,create -> EINVAL
		open t none rw,dir,tmp -> ENOENT
		write f x
		open t f rw,dir,tmp -> ENOTDIR
		umask 027
		chmod d 02777
		chown d 0:55
		open t d rw,dir,tmp 0666
		flink t c
		stat c mode=0640 gid=55
		as 1000:100
		open t . rw,dir,tmp -> EACCES
		open t d rw,dir,tmp
		flink t d/e
		stat d/e uid=1000 gid=55
	`},
	{"extended attributes", `
		chmod / 0777
		write a x
		lsx a
		getx a user.n v -> ENODATA
		rmx a user.n -> ENODATA
		setx a user.n v replace -> ENODATA
		setx a user.n v create
		setx a user.n v create -> EEXIST
		getx a user.n v
		setx a user.n longer replace
		getx a user.n longer
		setx a user.m -
		getx a user.m -
		lsx a user.m,user.n
		link a b
		mv a c
		getx b user.n longer
		getx c user.n longer
		rmx b user.n
		lsx c user.m
		setx a user.n v -> ENOENT
		mkdir d
		setx d user.n v
		getx d user.n v
		setx c user. v -> EINVAL
		setx c user v -> EOPNOTSUPP
		setx c other.n v -> EOPNOTSUPP
		getx c other.n v -> EOPNOTSUPP
		setx c system.n v -> EOPNOTSUPP
		as 1001:100
		rmx c security.n -> EPERM
		as 0
		symlink c l
		setx l! user.n v -> EPERM      # neither links nor devices have some
		getx l! user.n v -> ENODATA
		lsx l!
		setx l user.n v
		getx c user.n v
		mknod p 0010666
		setx p user.n v -> EPERM
		getx p user.n v -> ENODATA
		lsx p
		chmod c 0640
		mkdir sticky 01777
		as 1000:100
		getx c user.n v -> EACCES
		setx c user.n v -> EACCES
		setx c trusted.n v -> EPERM
		getx c trusted.n v -> ENODATA
		rmx c trusted.n -> EPERM
		lsx c user.m,user.n
		setx d user.n v -> EACCES
		getx d user.n v
		setx sticky user.n v -> EPERM
		getx sticky user.n v -> ENODATA
	`},
	{"chroot", `
		mkdir jail
		mkdir jail/in
		write jail/f inside
		write f outside
		symlink /f jail/l
		chroot jail
		cd /
		read /f inside
		read ../f inside
		read in/../../../f inside
		read l inside
		pwd /
		cd in
		pwd /in
	`},
}
