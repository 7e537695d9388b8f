package tools_test

// archiveTools compress and pack.
func archiveTools() []tool {
	const file = `cp -p "$OUT/in.txt" a`
	return []tool{
		{name: "gzip -k", before: file, mtime: true, script: `gzip -k a; zcat a.gz | tail -1`},
		{name: "gzip, gunzip", before: file + `; cp -p "$OUT/in.bin" b`, mtime: true, more: removes, script: `
gzip a; gzip -k b; rm b; keep; gunzip b.gz; gzip -c b > c.gz; touch -d 2020-01-01 c.gz; gzip -t c.gz`},
		{name: "pigz -k", needs: "pigz", before: file, mtime: true, script: `pigz -k a; unpigz -c a.gz | tail -1`},
		{name: "bzip2 -k", needs: "bzip2", before: file, mtime: true, script: `bzip2 -k a`},
		{name: "bzip2, bunzip2", needs: "bzip2", before: file, mtime: true, more: removes, script: `bzip2 a; keep; bunzip2 a.bz2`},
		{name: "xz -k", needs: "xz", before: file, mtime: true, script: `xz -k a`},
		{name: "xz, unxz", needs: "xz", before: file, mtime: true, more: removes, script: `xz a; keep; unxz a.xz`},
		{name: "zstd", needs: "zstd", before: file, mtime: true, script: `zstd -q a`},
		{name: "zstd --rm, unzstd", needs: "zstd", before: file, mtime: true, more: removes, script: `zstd -q --rm a; keep; unzstd -q a.zst; touch -d 2020-01-01 a`},
		{name: "lz4", needs: "lz4", before: file, mtime: true, script: `lz4 -q a a.lz4; lz4 -q -d a.lz4 b`},
		{name: "zip", needs: "zip", before: file + `; cp -p "$OUT/in.bin" b`, mtime: true, more: "it makes an empty archive first, and removes that", between: ": > z.zip", script: `zip -qX z.zip a b; touch -d 2020-01-01 z.zip`, random: `^zi(\w{6})$`},
		{name: "zip, changed", needs: "zip", before: file + `; cp -p "$OUT/in.bin" b; zip -qX z.zip a b`, mtime: true, more: "it removes the old archive first", script: `
zip -qdX z.zip a; keep; zip -qX z.zip a; touch -d 2020-01-01 z.zip`, random: `^zi(\w{6})$`},
		{name: "unzip", needs: "zip unzip", before: `(cd "$OUT" && zip -qrX z.zip tree in.txt; touch -d 2020-01-01 z.zip)`, mtime: true, script: `unzip -q "$OUT/z.zip"; touch -d 2020-01-01 tree/sub tree`},
		{name: "unzip -o", needs: "zip unzip", before: `(cd "$OUT" && zip -qrX z.zip in.txt; touch -d 2020-01-01 z.zip); seed in.txt 3`, mtime: true, more: "it removes the old file first", script: `unzip -qo "$OUT/z.zip" in.txt`},
		{name: "tar c", before: `cp -a "$OUT/tree" t`, script: `tar --sort=name --owner=0 --group=0 --mtime=2020-01-01 -cf a.tar t; tar --sort=name --owner=0 --group=0 --mtime=2020-01-01 -czf a.tgz t; tar -tf a.tar`},
		{name: "tar x", before: `tar -C "$OUT" -cf "$OUT/a.tar" tree in.txt; touch -d 2020-01-01 "$OUT/a.tar"`, mtime: true, script: `tar -xpf "$OUT/a.tar"`},
		{name: "tar x, twice", before: `tar -C "$OUT" -cf "$OUT/a.tar" tree in.txt; touch -d 2020-01-01 "$OUT/a.tar"; tar -xpf "$OUT/a.tar"`, mtime: true, more: "it removes the old files first", script: `tar -xpf "$OUT/a.tar"`},
		{name: "tar r", before: `seed f; seed g 3`, script: `
tar --owner=0 --group=0 --mtime=2020-01-01 -cf a.tar f; keep; tar --owner=0 --group=0 --mtime=2020-01-01 -rf a.tar g; keep; tar -f a.tar --delete f; tar -tf a.tar`},
		{name: "cpio", needs: "cpio", mtime: true, before: `(cd "$OUT/tree" && find . | cpio --quiet -o > "$OUT/a.cpio")`, script: `cpio --quiet -idm < "$OUT/a.cpio"; rm "$OUT/a.cpio"; touch -d 2020-01-01 sub/deep sub`},
	}
}

// awsSeeded gives the AWS CLI random names that have a letter: one in 500 has none,
// and is taken for a date.
const awsSeeded = `export PYTHONPATH="$MODULE/internal/testing/tools/testdata/site"
`

// transferTools bring files from elsewhere.
func transferTools() []tool {
	return []tool{
		{name: "rsync -a", needs: "rsync", mtime: true, script: `rsync -a "$OUT/in.txt" .`, random: `\.(\w{6})$`},
		{name: "rsync -a over an old file", needs: "rsync", before: "seed in.txt 3", mtime: true, script: `rsync -a "$OUT/in.txt" .`, random: `\.(\w{6})$`},
		{name: "rsync -a, twice", needs: "rsync", mtime: true, script: `
rsync -a "$OUT/tree" "$OUT/in.txt" "$OUT/in.bin" .; echo again; rsync -ai "$OUT/tree" "$OUT/in.txt" "$OUT/in.bin" .
rsync -a tree in.bin "$OUT/back"; touch -d 2020-01-01 "$OUT/back"`, random: `\.(\w{6})$`},
		{name: "rsync -a, changed and deleted", needs: "rsync", mtime: true, more: removes, script: `
rsync -a "$OUT/tree" .; keep; seed "$OUT/tree/sub/two" 5; touch -d 2024-01-01 "$OUT/tree/sub/two" "$OUT/tree/sub"; rm "$OUT/tree/one"; touch -d 2024-01-01 "$OUT/tree"
rsync -a --delete "$OUT/tree" .; rsync -ain --delete "$OUT/tree" .`, random: `\.(\w{6})$`},
		{name: "rsync --inplace", needs: "rsync", before: `rsync -a --inplace "$OUT/in.bin" "$OUT/in.txt" .; sed -i s/150000/XXXXXX/ "$OUT/in.bin"; touch -d 2024-05-05 "$OUT/in.bin"`, mtime: true, script: `
rsync -a --inplace --no-whole-file "$OUT/in.bin" .; echo again; rsync -ai --inplace "$OUT/in.bin" "$OUT/in.txt" .; seq 5 >> "$OUT/in.txt"; touch -d 2024-05-05 "$OUT/in.txt"; rsync -a --append "$OUT/in.txt" .`},
		{name: "curl -o", needs: "curl", script: `curl -s -o a "$URL/in.txt"; curl -s -o b "file://$OUT/in.bin"; curl -s "$URL/in.txt" > c`},
		{name: "curl -o over an old file", needs: "curl", before: "seed a", script: `curl -s -o a "$URL/in.txt"`},
		{name: "curl -R -O", needs: "curl", mtime: true, script: `curl -s -R -O "$URL/in.txt"`},
		{name: "wget", needs: "wget", mtime: true, script: `wget -q "$URL/in.txt"`},
		{name: "wget -O over an old file", needs: "wget", before: "seed a", script: `wget -q -O a "$URL/in.txt"`},
		{name: "wget -N", needs: "wget", before: `seed in.txt; touch -d 2020-01-01 in.txt`, mtime: true, script: `wget -q -N "$URL/in.txt"`},
		{name: "aws s3 cp", needs: "aws", mtime: true, script: awsSeeded + `aws s3 cp --quiet "s3://$BUCKET/in.txt" a; aws s3 cp --quiet a "s3://$BUCKET/back"`, random: `\.([0-9a-fA-F]{8})$`},
		{name: "aws s3 cp over an old file", needs: "aws", before: "seed a", mtime: true, script: awsSeeded + `aws s3 cp --quiet "s3://$BUCKET/in.txt" a`, random: `\.([0-9a-fA-F]{8})$`},
		{name: "aws s3 sync", needs: "aws", mtime: true, script: awsSeeded + `aws s3 sync --quiet --exclude back "s3://$BUCKET" d; aws s3 sync --exclude back "s3://$BUCKET" d; touch -d 2020-01-01 d`, random: `\.([0-9a-fA-F]{8})$`},
	}
}

// gitSetup makes commits the same each time.
const gitSetup = `
export GIT_AUTHOR_DATE=2024-01-01T00:00:00Z GIT_COMMITTER_DATE=2024-01-01T00:00:00Z GIT_CONFIG_NOSYSTEM=1 GIT_OPTIONAL_LOCKS=0
git config --global user.name n; git config --global user.email e@example.org; git config --global gc.auto 0; git config --global maintenance.auto false
git config --global init.defaultBranch main; git config --global pack.threads 1
`

const (
	// The index holds times and inode numbers, the logs times, and init looks
	// whether there are symbolic links.
	gitVaries = `(^|/)(index|logs/.*|config)$`
	gitMore   = "it writes its settings and its index more than once"
	gitNote   = "`.git/config` says `symlinks = false`"
	gitRandom = `^(?:tmp_(?:obj|pack|idx|rev)_|refs_|packs_|t|pack-|\.tmp-(\d+)-pack-)(\w{6}|\w{40})(?:\.\w+)?$|^([0-9a-f]{38}|[0-9a-f]{2})$`
)

// journal is why databases need more.
const journal = "each sync is a version, and a journal that may be needed after a crash is a file"

// databaseTools change files in place, under locks.
func databaseTools() []tool {
	return []tool{
		{name: "git init, add, commit", needs: "git", more: gitMore, varies: gitVaries, note: gitNote, random: gitRandom, script: gitSetup + `
git init -q .; seed a; seed b 3; git add .; git commit -qm one`},
		{name: "git commit, three times", needs: "git", more: gitMore, varies: gitVaries, note: gitNote, random: gitRandom, script: gitSetup + `
git init -q .; seed a; seed b 3; git add .; git commit -qm one; keep; seed b 4; git commit -qam two; keep; git mv a c; git commit -qm three; git status --short; git log --oneline; git fsck`},
		{name: "git clone", needs: "git", more: gitMore, varies: gitVaries, note: gitNote, random: gitRandom, before: gitSetup + `
git init -q "$OUT/r"; (cd "$OUT/r"; seed a; seed b 5; git add .; git commit -qm one)`, script: `
git clone -q --no-local "$OUT/r" work; git -C work log --oneline; git -C work status --short; rm "$OUT/r/.git/index"`},
		{name: "git gc", needs: "git", more: "it writes its settings and indexes more than once, and removes what it packed", heads: true, varies: gitVaries, note: gitNote, random: gitRandom, before: gitSetup + `
git init -q .; for i in 1 2 3 4 5; do seed a "$i"; git add a; git commit -qm "$i"; done`, script: `export GIT_OPTIONAL_LOCKS=0; git gc -q --prune=now; git fsck; git log --oneline; git count-objects`},
		{name: "sqlite3", needs: "sqlite3", more: journal, heads: true, varies: `^q\.db$`, script: `
sqlite3 q.db 'create table t(a, b); insert into t values (1, 2), (3, 4);'; keep
for i in 1 2 3 4 5; do sqlite3 q.db "insert into t select $i, count(*) from t"; keep; done
sqlite3 q.db 'begin; delete from t where a = 3; rollback; update t set b = b + 1; vacuum; pragma integrity_check; select * from t order by a, b'`},
		{name: "sqlite3, journal_mode=wal", needs: "sqlite3", more: journal, heads: true, varies: `^q\.db`, script: `
sqlite3 q.db 'pragma journal_mode=wal; create table t(a); insert into t values (1), (2);'; keep
sqlite3 q.db 'insert into t values (3); select count(*) from t; pragma integrity_check'`},
	}
}
