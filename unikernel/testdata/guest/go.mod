module example.com/guest

go 1.25
