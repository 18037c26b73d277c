set pagination off
set confirm off
set print thread-events off
set width 0
set print address off
break inner
run
bt 2
next
print r
watch shared
continue
info breakpoints
stepi
print $_siginfo.si_signo
delete
finish
set var shared = 100
hbreak work
continue
print (long)arg
delete
call inner(21)
print shared
rwatch shared
continue
delete
catch syscall exit_group
continue
info threads
kill
