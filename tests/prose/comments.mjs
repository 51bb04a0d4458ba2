// Writes the comments of Rust files as Markdown, for textlint: comments.mjs root out file ...
//
// Line n of out/<file>.md is the comment of line n of the file, so that line numbers stay true. Code is left blank.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

// A string, a character or a comment. In the first two, // begins no comment; a lifetime such as 'a is no character.
const TOKEN = /\br(#*)"[^]*?"\1|"(?:\\[^]|[^"\\])*"|'(?:\\(?:u\{\w+\}|x\w\w|.)|[^'\\\n])'|(\/\/[^\n]*)|(\/\*[^]*?\*\/)/g;

const lines = (text) => text.split("\n").length - 1;

function comments(code) {
    let out = "", at = 0;
    for (const { 0: token, 2: line, 3: block, index } of code.matchAll(TOKEN)) {
        out += "\n".repeat(lines(code.slice(at, index)));
        // The indentation of a list item is kept, that of the code is not.
        if (line) out += line.replace(/^\/\/[/!]? ?/, "");
        else if (block) out += block.replace(/^\/\*[*!]?|\*\/$/g, "").replace(/^ +\*? ?/gm, "");
        else out += "\n".repeat(lines(token));
        at = index + token.length;
    }
    return out + "\n".repeat(lines(code.slice(at)));
}

const [root, out, ...files] = process.argv.slice(2);
for (const file of files) {
    const page = join(out, `${file}.md`);
    mkdirSync(dirname(page), { recursive: true });
    writeFileSync(page, comments(readFileSync(join(root, file), "utf8")));
}
