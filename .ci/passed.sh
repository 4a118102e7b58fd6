# What tells a tree that was checked from one that was not: the file `ci-passed` in the target folder. For `.ci/run`, which reads
# this file.

# tree: a line that changes with the commit and with the contents of any file that git tracks or would track; nothing without git.
tree() {
    git rev-parse --verify --quiet HEAD >/dev/null 2>&1 || return 0
    {
        git rev-parse HEAD
        # A file that is gone has no contents. `git status` says that it is gone.
        git status --porcelain
        git ls-files -z --cached --others --exclude-standard | xargs -0 cksum 2>/dev/null || true
    } | git hash-object --stdin
}

# begin_passed: forgets what an earlier run has said, and keeps what this run is about.
begin_passed() {
    mkdir -p "$target"
    rm -f "$target/ci-passed"
    tree_begun=$(tree)
    commit=
    if [ -n "$tree_begun" ]; then
        commit=$(git rev-parse HEAD)
        [ -n "$(git status --porcelain)" ] && commit+=" with changes" || commit+=" clean"
    fi
}

# end_passed NOTES: writes the commit at the beginning, and whether the tree was clean, if the tree is still the same. Prints what
# it has done.
end_passed() {
    if [ -z "$commit" ]; then
        echo "ci-passed: NOT WRITTEN, since there is no commit"
    elif [ "$(tree)" != "$tree_begun" ]; then
        echo "ci-passed: NOT WRITTEN, since the tree has changed since the run began at $commit"
    else
        echo "$commit$1" >"$target/ci-passed"
        echo "ci-passed: $commit$1"
    fi
}
