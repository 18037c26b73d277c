module probe

go 1.24
