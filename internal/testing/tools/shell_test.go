package tools_test

// shellTools write, copy and move plain files.
func shellTools() []tool {
	return []tool{
		{name: "shell redirections", script: `
echo one > a; echo two >> a; { echo three; echo four; } >> a; (echo five; /bin/true; echo six) > b
exec 3> c; echo seven >&3; /bin/true; echo eight >&3; exec 3>&-
: > empty; cat a b c > all; cat <<< here > doc
set -C; if echo no 2> "$OUT/err" > a; then exit 1; fi; set +C
seq 5 | while read -r n; do echo "$n" >> loop; done
f=$(mktemp ./tmp.XXXXXXXX); echo t > "$f"; mv "$f" made
cat a b c empty all doc loop made`, random: `^tmp\.(\w{8})$`},
		{name: "cp", script: `
cp "$OUT/in.txt" a; cp "$OUT/in.bin" b; cp a c; cp b a; cp -r "$OUT/tree" t; cp -r t u
cp c "$OUT/back"; cp -r u "$OUT/tree.back"; cmp b a`},
		{name: "cp -a, cp -p", mtime: true, script: `
cp -p "$OUT/in.txt" a; cp -a "$OUT/tree" t; cp -a t u; cp -p a b; cp -a u "$OUT/back"`},
		{name: "cp -u, cp -b, cp -f, cp -n", script: `
seed a; seed b 3; touch -d 2001-01-01 b; cp -u a b; seed c 5; cp -b a c; cp -f "$OUT/in.txt" a; seed d 4; cp -n a d 2>/dev/null || true`},
		{name: "mv in", mtime: true, script: `mv "$OUT/in.txt" a; mv "$OUT/tree" t; ls "$OUT"`},
		{name: "mv within", script: `
seed a; mv a b; seed c 3; mv c b; mkdir d e; mv b d; mv d/b e/b; seed f 4; mv -n f e/b || true; mv e g; seed h; mv -b h f`},
		{name: "mv out", mtime: true, script: `
cp -p "$OUT/in.txt" a; mv a "$OUT/moved"; cp -a "$OUT/tree" t; mv t "$OUT/moved.tree"; ls`},
		{name: "rm, rmdir, mkdir", script: `
mkdir -p a/b/c d; seed a/b/c/f; seed a/g; rmdir d; rm a/g; if rmdir a 2>/dev/null; then exit 1; fi
rm -r a; mkdir -m 700 e; seed e/f; exec 4< e/f; rm e/f; cat <&4; exec 4>&-; rmdir e; seed last 2; rm -f gone last; mkdir kept`},
		{name: "install", mtime: true, script: `
install -m 640 -p "$OUT/in.txt" a; install -D -p -m 755 "$OUT/in.txt" d/e/f; install -d -m 700 g; touch -d 2020-01-01 d/e d g`},
		{name: "dd", script: `dd if="$OUT/in.bin" of=a bs=64k status=none; dd if=a of=b bs=1000 skip=3 count=5 status=none; dd if=/dev/zero of=sparse bs=1 count=1 seek=100000 status=none`},
		{name: "dd conv=notrunc", script: `
cp "$OUT/in.bin" a; printf XYZ | dd of=a bs=1 seek=1000000 conv=notrunc status=none; printf END | dd of=a oflag=append conv=notrunc status=none; seed b 3; printf __ | dd of=b bs=1 seek=2 status=none`},
		{name: "dd conv=fsync", script: `dd if="$OUT/in.bin" of=a bs=64k conv=fsync status=none; dd if="$OUT/in.txt" of=b bs=512 oflag=dsync status=none; dd if="$OUT/in.txt" of=c conv=fdatasync status=none; sync c`},
		{name: "tee, tee -a", script: `seq 9 | tee a b; seq 3 | tee -a a; seq 2 | tee b > c`},
		{name: "sort -o, shuf -o, uniq, tac", script: `
seed a; sort -r -o a a; sort -o b a; tac a > c; sort -u a b > d; uniq -c d e; shuf -o f --random-source="$OUT/in.bin" a`},
		{name: "split, csplit", script: `split -l 60 "$OUT/in.txt" part.; split -b 1M "$OUT/in.bin" bin.; csplit -s -f cs. "$OUT/in.txt" 50 100; cat bin.* | cmp - "$OUT/in.bin"`},
		{name: "truncate, fallocate", needs: "fallocate", script: `
truncate -s 100000 a; seed b; truncate -s 10 b; seed c; truncate -s +5 c; seed d; truncate -s 0 d; fallocate -l 65536 e; seed f; fallocate -n -l 65536 f`},
		{name: "touch, touch -d", mtime: true, script: `
touch -d 2021-06-01T01:02:03.456 a; seed b; touch -d 1999-12-31 b; touch -r b c; touch -c gone; touch -d 2010-10-10 c; test -e a`},
		{name: "chmod, umask", script: `
seed a; chmod 600 a; seed b; chmod a+x b; umask 077; seed c; mkdir d; umask 022; chmod 400 c; cat c > e; mkdir f; chmod 711 f`},
		{name: "shred -u", needs: "shred", script: `seed f; seed g; shred -u f; shred -n 1 -u g; ls`},
		{name: "find -delete, xargs", script: `
cp -r "$OUT/tree" t; find . -type f | sort | xargs wc -c; find t -name 'one' -delete; find t -type d -empty; find t -size +1k -exec gzip -n {} \; ; grep -rc line t | sort`},
		{name: "flock", needs: "flock", script: `
for n in 1 2 3 4; do (for i in 1 2 3 4 5; do flock lock bash -c 'n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n'; done) & done; wait; cat n`},
	}
}

// editTools write beside a file and rename, or write over it.
func editTools() []tool {
	return []tool{
		{name: "sed -i", script: `seed f; sed -i s/line/row/ f; sed -i.bak 1d f; cat f | tail -1`, random: `^sed(\w{6})$`},
		{name: "perl -pi", needs: "perl", script: `seed f; perl -pi -e s/line/row/ f; perl -pi.bak -e s/row/LINE/ f`, random: `^XX(\w{6,8})$`},
		{name: "gawk -i inplace", needs: "gawk", script: `seed f; gawk -i inplace '{print NR, $0}' f; gawk -i inplace '{print $1}' f`, random: `\.gawk\.(\w{6})$`},
		{name: "gawk -i inplace, with a backup", needs: "gawk", script: `seed f; gawk -i inplace -v INPLACE_SUFFIX=.bak '{print $1}' f`, random: `\.gawk\.(\w{6})$`, differs: "its backup is a hard link; the file stays as it was"},
		{name: "ln, ln -s, mkfifo", script: `seed f; ln f g; ln -s f h; mkfifo p`, differs: "a file has one name, and there are no other kinds: EPERM"},
		{name: "awk, tr, cut > new", script: `seed a; awk '{print $2}' a > b; tr a-z A-Z < a > c; cut -d' ' -f2 a | paste - a > d`},
		{name: "vim", needs: "vim", script: `
seed f; chmod 640 f; vim -es -u NONE -i NONE --cmd 'set nocp swapfile backup writebackup' -c '%s/line/row/' -c wq f; vim -es -u NONE -i NONE --cmd 'set nocp swapfile' -c 'normal Goend' -c wq new`},
		{name: "vim, no swap, no backup", needs: "vim", script: `
seed f; vim -n -es -u NONE -i NONE --cmd 'set nocp nobackup nowritebackup' -c '1d' -c wq f`},
		{name: "ex", needs: "ex", script: `seed f; printf '%%s/line/row/\nwq\n' | ex -s f`},
		{name: "ed", needs: "ed", script: `seed f; printf '1,5d\n$a\nend\n.\nw\nw g\nq\n' | ed -s f`},
		{name: "patch", needs: "patch diff", script: `
seed f; sed s/7/seven/ f > "$OUT/g"; diff -u --label f --label f f "$OUT/g" > "$OUT/p" || true; patch -s f "$OUT/p"; patch -s -R f "$OUT/p"; patch -s -b f "$OUT/p"; cmp f "$OUT/g"`, random: `\.o(\w{6})$`},
	}
}

// archiveTools compress, pack and synchronise.
func archiveTools() []tool {
	return []tool{
		{name: "gzip, gunzip", mtime: true, script: `
cp -p "$OUT/in.txt" a; gzip a; zcat a.gz | tail -1; cp -p "$OUT/in.bin" b; gzip -k b; rm b; gunzip b.gz; gzip -c b > c.gz; touch -d 2020-01-01 c.gz; gzip -t c.gz`},
		{name: "bzip2", needs: "bzip2", mtime: true, script: `cp -p "$OUT/in.txt" a; bzip2 a; cp -p "$OUT/in.txt" b; bzip2 -k b; bunzip2 a.bz2`},
		{name: "xz", needs: "xz", mtime: true, script: `cp -p "$OUT/in.txt" a; xz a; cp -p "$OUT/in.txt" b; xz -k b; unxz a.xz`},
		{name: "zstd", needs: "zstd", mtime: true, script: `cp -p "$OUT/in.txt" a; zstd -q --rm a; cp -p "$OUT/in.txt" b; zstd -q b; unzstd -q a.zst; touch -d 2020-01-01 a`},
		{name: "zip", needs: "zip", mtime: true, script: `
cp -p "$OUT/in.txt" a; cp -p "$OUT/in.bin" b; zip -qX z.zip a b; zip -qdX z.zip a; zip -qX z.zip a; touch -d 2020-01-01 z.zip`, random: `^zi(\w{6})$`},
		{name: "unzip", needs: "zip unzip", mtime: true, script: `(cd "$OUT" && zip -qrX z.zip tree in.txt; touch -d 2020-01-01 z.zip); unzip -q "$OUT/z.zip"; unzip -qo "$OUT/z.zip" in.txt; touch -d 2020-01-01 tree/sub tree`},
		{name: "tar c", script: `cp -a "$OUT/tree" t; tar --sort=name --owner=0 --group=0 --mtime=2020-01-01 -cf a.tar t; tar --sort=name --owner=0 --group=0 --mtime=2020-01-01 -czf a.tgz t; tar -tf a.tar`},
		{name: "tar x", mtime: true, script: `tar -C "$OUT" -cf "$OUT/a.tar" tree in.txt; touch -d 2020-01-01 "$OUT/a.tar"; tar -xpf "$OUT/a.tar"; tar -xpf "$OUT/a.tar"`},
		{name: "tar r", script: `
seed f; tar --owner=0 --group=0 --mtime=2020-01-01 -cf a.tar f; seed g 3; tar --owner=0 --group=0 --mtime=2020-01-01 -rf a.tar g; tar -f a.tar --delete f; tar -tf a.tar`},
		{name: "rsync -a, twice", needs: "rsync", mtime: true, script: `
rsync -a "$OUT/tree" "$OUT/in.txt" "$OUT/in.bin" .; echo again; rsync -ai "$OUT/tree" "$OUT/in.txt" "$OUT/in.bin" .
rsync -a tree in.bin "$OUT/back"; touch -d 2020-01-01 "$OUT/back"`, random: `\.(\w{6})$`},
		{name: "rsync -a, changed and deleted", needs: "rsync", mtime: true, script: `
rsync -a "$OUT/tree" .; seed "$OUT/tree/sub/two" 5; touch -d 2024-01-01 "$OUT/tree/sub/two" "$OUT/tree/sub"; rm "$OUT/tree/one"; touch -d 2024-01-01 "$OUT/tree"
rsync -a --delete "$OUT/tree" .; rsync -ain --delete "$OUT/tree" .`, random: `\.(\w{6})$`},
		{name: "rsync --inplace", needs: "rsync", mtime: true, script: `
rsync -a --inplace "$OUT/in.bin" "$OUT/in.txt" .; sed -i s/150000/XXXXXX/ "$OUT/in.bin"; touch -d 2024-05-05 "$OUT/in.bin"
rsync -a --inplace --no-whole-file "$OUT/in.bin" .; echo again; rsync -ai --inplace "$OUT/in.bin" "$OUT/in.txt" .; seq 5 >> "$OUT/in.txt"; touch -d 2024-05-05 "$OUT/in.txt"; rsync -a --append "$OUT/in.txt" .`},
		{name: "cpio", needs: "cpio", mtime: true, script: `(cd "$OUT/tree" && find . | cpio --quiet -o > "$OUT/a.cpio"); cpio --quiet -idm < "$OUT/a.cpio"; rm "$OUT/a.cpio"; touch -d 2020-01-01 sub/deep sub`},
		{name: "curl -o", needs: "curl", script: `curl -s -o a "file://$OUT/in.bin"; curl -s "file://$OUT/in.txt" > b`},
	}
}

// gitSetup makes commits the same each time.
const gitSetup = `
export GIT_AUTHOR_DATE=2024-01-01T00:00:00Z GIT_COMMITTER_DATE=2024-01-01T00:00:00Z GIT_CONFIG_NOSYSTEM=1
git config --global user.name n; git config --global user.email e@example.org; git config --global gc.auto 0
git config --global init.defaultBranch main; git config --global pack.threads 1
`

const (
	// The index holds times and inode numbers, the logs times, and init looks
	// whether there are symbolic links.
	gitVaries = `(^|/)(index|logs/.*|config)$`
	gitNote   = "`.git/config` says `symlinks = false`"
	gitRandom = `^(?:tmp_(?:obj|pack|idx|rev)_|refs_|packs_|t|pack-|\.tmp-(\d+)-pack-)(\w{6}|\w{40})(?:\.\w+)?$|^([0-9a-f]{38}|[0-9a-f]{2})$`
)

// databaseTools change files in place, under locks.
func databaseTools() []tool {
	return []tool{
		{name: "git init, commit", needs: "git", varies: gitVaries, note: gitNote, random: gitRandom, script: gitSetup + `
git init -q .; seed a; seed b 3; git add .; git commit -qm one; seed b 4; git commit -qam two; git mv a c; git commit -qm three; git status --short; git log --oneline; git fsck`},
		{name: "git clone", needs: "git", varies: gitVaries, note: gitNote, random: gitRandom, script: gitSetup + `
git init -q "$OUT/r"; (cd "$OUT/r"; seed a; seed b 5; git add .; git commit -qm one); git clone -q --no-local "$OUT/r" work; git -C work log --oneline; git -C work status --short; rm "$OUT/r/.git/index"`},
		{name: "git gc", needs: "git", varies: gitVaries, note: gitNote, random: gitRandom, script: gitSetup + `
git init -q .; for i in 1 2 3 4 5; do seed a "$i"; git add a; git commit -qm "$i"; done; git gc -q --prune=now; git fsck; git log --oneline; git count-objects`},
		{name: "sqlite3", needs: "sqlite3", varies: `^q\.db$`, script: `
sqlite3 q.db 'create table t(a, b); insert into t values (1, 2), (3, 4);'
for i in 1 2 3 4 5; do sqlite3 q.db "insert into t select $i, count(*) from t"; done
sqlite3 q.db 'begin; delete from t where a = 3; rollback; update t set b = b + 1; vacuum; pragma integrity_check; select * from t order by a, b'`},
		{name: "sqlite3, journal_mode=wal", needs: "sqlite3", varies: `^q\.db`, script: `
sqlite3 q.db 'pragma journal_mode=wal; create table t(a); insert into t values (1), (2);'
sqlite3 q.db 'insert into t values (3); select count(*) from t; pragma integrity_check'`},
	}
}
