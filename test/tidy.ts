/** The house rules that no compiler checks: arrows between rooms, sizes, and the one place for each dangerous thing. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('../..', import.meta.url))

const architecture = readFileSync(join(root, 'docs/ARCHITECTURE.md'), 'utf8')

/** A file imports only from its own room and from rooms above it in the table that readers see, too. */
const rooms = [...architecture.matchAll(/^\| `(\w+)\/` /gm)].map(([, name = '']) => name)

/** Rooms that others may only talk to by message: nobody but wiring imports them. */
const closed = new Set(['routes', 'upload', 'payment', 'threads'])

/** Rooms that put the others together. */
const wiring = new Set(['threads', 'main', 'cli'])

const linesMax = 400
/** A file of `workers/` only runs the function that opens its kind of thread. */
const workerLinesMax = 40
const functionLinesMax = 60
/** The formatter keeps code within 110; words of a comment may run a little wider. */
const columnsMax = 130

/** Threads that parse documents of others from their start. */
const zodThreads: ReadonlySet<string> = new Set(['workers/bands.ts', 'workers/swarm.ts'])

interface Source {
  readonly path: string
  readonly text: string
  readonly lines: readonly string[]
}

function sources(folder: string, ends = /\.ts$/): Source[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => ends.test(name) && !name.includes('node_modules'))
    .map((name) => join(folder, name))
    .sort()
    .map((path) => {
      const text = readFileSync(join(root, path), 'utf8')
      return { path, text, lines: text.split('\n') }
    })
}

const program = ['src', 'workers', 'config', 'native'].flatMap((folder) => sources(folder))
const everything = [...program, ...['test', 'bench'].flatMap((folder) => sources(folder))]

/** What the package's own names (`#name`) stand for: one file in Node, another in browsers. */
const { imports: ownNames } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly imports: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** Paths (with .ts) that a file imports from the project; `but`: without what the package's own names stand for there. */
function importsOf({ path, text }: Source, but?: string): string[] {
  const paths = [...text.matchAll(/(?:from|import)\s*\(?\s*'([.#][^']+)'/g)].flatMap(([, name = '']) =>
    name.startsWith('#')
      ? Object.entries(ownNames[name] ?? {})
          .filter(([where]) => where !== but)
          .map(([, target]) => target.replace('./dist/', ''))
      : join(dirname(path), name),
  )
  return paths.map((each) => normalize(each).replace(/\.js$/, '.ts'))
}

/** The room of a file of `src/`: its folder, or its own name for files at the top. */
function roomOf(path: string): string {
  const [, name = '', inner] = path.split('/')
  return inner === undefined ? name.replace(/\.ts$/, '') : name
}

t.test('every arrow between rooms points the same way', async (t) => {
  const wrong: string[] = []
  for (const source of program.filter(({ path }) => path.startsWith('src/'))) {
    const here = roomOf(source.path)
    if (!rooms.includes(here)) wrong.push(`${source.path} is in no room that is on the list`)
    for (const target of importsOf(source).filter((path) => path.startsWith('src/'))) {
      const there = roomOf(target)
      if (rooms.indexOf(there) > rooms.indexOf(here)) wrong.push(`${source.path} -> ${target} points back`)
      // A port is what messages say: it is for all.
      const isPort = target.endsWith('-port.ts')
      if (closed.has(there) && !isPort && there !== here && !wiring.has(here))
        wrong.push(`${source.path} enters ${there}`)
    }
  }
  t.strictSame(wrong, [])
})

t.test('services stand on serving/, and not on each other', async (t) => {
  const services = ['gateway', 'upload', 'payment']
  const wrong = program.flatMap((source) => {
    const here = roomOf(source.path)
    if (!source.path.startsWith('src/') || !services.includes(here)) return []
    return importsOf(source)
      .filter((target) => target.startsWith('src/') && !target.endsWith('-port.ts'))
      .filter((target) => services.includes(roomOf(target)) && roomOf(target) !== here)
      .map((target) => `${source.path} -> ${target}`)
  })
  t.strictSame(wrong, [])
})

/** The files that can be reached from a file by imports. */
function reachable(from: string, imports: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const found = new Set<string>()
  const open = [from]
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    for (const next of imports.get(path) ?? []) {
      if (found.has(next)) continue
      found.add(next)
      open.push(next)
    }
  }
  return found
}

/** The rooms whose files the client may use, those of them that need no Node. */
const shared = new Set(['format', 'proof'])

t.test('the client, and what it imports of other rooms, is free of what only Node has', async (t) => {
  const imports = new Map(program.map((source) => [source.path, importsOf(source, 'node')]))
  const clients = program.filter(({ path }) => /^src\/client\/(?!node\/)/.test(path)).map(({ path }) => path)
  const inBrowsers = new Set(clients.flatMap((path) => [path, ...reachable(path, imports)]))
  t.ok(inBrowsers.has('src/format/item-fields.ts') && inBrowsers.has('src/proof/path-rules.ts'))
  const wrong: string[] = []
  for (const { path, text } of program.filter(({ path }) => inBrowsers.has(path))) {
    const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    if (
      /from 'node:|(?<!\.|readonly )\bBuffer\b|\bprocess\.(?!getBuiltinModule)/.test(
        code.replace(/process\?\./g, ''),
      )
    )
      wrong.push(`${path} needs Node`)
    const room = roomOf(path)
    if (path.startsWith('src/client/node/') || (room !== 'client' && !shared.has(room)))
      wrong.push(`${path} is reached from browsers`)
  }
  t.strictSame(wrong, [])
})

t.test('no files import each other in a circle', async (t) => {
  const imports = new Map(everything.map((source) => [source.path, importsOf(source)]))
  const circular = everything.map(({ path }) => path).filter((path) => reachable(path, imports).has(path))
  t.strictSame(circular, [])
})

t.test('folders of a room have an order', async (t) => {
  // Files that stand beside the folders are places of their own: a port below them, or what puts them together above them.
  const placeOf = (path: string) => {
    const [, room = '', ...inner] = path.split('/')
    return join(room, inner.length > 1 ? `${inner.slice(0, -1).join('/')}/` : (inner[0] ?? ''))
  }
  const arrows = new Map<string, string[]>()
  for (const source of program.filter(({ path }) => /^src\/\w+\//.test(path))) {
    const here = placeOf(source.path)
    const targets = importsOf(source)
      .filter((target) => target.startsWith('src/') && roomOf(target) === roomOf(source.path))
      .map(placeOf)
      .filter((there) => there !== here)
    arrows.set(here, [...(arrows.get(here) ?? []), ...targets])
  }
  t.ok(arrows.get('payment/cards/')?.includes('payment/books/'), 'arrows between folders are seen')
  t.strictSame(
    [...arrows.keys()].filter((place) => reachable(place, arrows).has(place)),
    [],
  )
})

t.test('no thread loads at its start what few requests need', async (t) => {
  // Zod takes 6.7 MB of each thread, the curve of Ethereum's keys 2 to 4: loaded with the first question that needs them.
  const atStart = /^(?:import|export) (?!type\b)(?:[^'();]* from )?'([^']+)'/gm
  const imports = new Map(
    program.map(({ path, text }): [string, string[]] => [
      path,
      [...text.matchAll(atStart)].map(([, name = '']) =>
        name.startsWith('.') ? normalize(join(dirname(path), name)).replace(/\.js$/, '.ts') : name,
      ),
    ]),
  )
  t.ok(imports.get('src/routes/admin/correction-shape.ts')?.includes('zod'), 'imports of packages are seen')
  const threads = [...imports.keys()].filter((path) => path.startsWith('workers/'))
  t.ok(threads.length > 10)
  t.strictSame(
    threads.filter((path) => !zodThreads.has(path) && reachable(path, imports).has('zod')),
    [],
  )
  const curve = '@noble/curves/secp256k1.js'
  t.strictSame(
    threads.filter((path) => reachable(path, imports).has(curve)),
    [],
  )
})

t.test('an exported name means one thing', async (t) => {
  const owners = new Map<string, string[]>()
  const declared =
    /^export (?:declare )?(?:abstract )?(?:async )?(?:class|function\*?|const|let|interface|type|enum) (\w+)/gm
  // The client is a program of its own: what goes over the wire is named alike in both.
  for (const { path, text } of program.filter(({ path }) => !path.startsWith('src/client/'))) {
    for (const name of new Set([...text.matchAll(declared)].map(([, name = '']) => name)))
      owners.set(name, [...(owners.get(name) ?? []), path])
  }
  const ambiguous = [...owners].filter(([, paths]) => paths.length > 1)
  t.strictSame(
    ambiguous.map(([name, paths]) => `${name}: ${paths}`),
    [],
  )
})

t.test('a file says what it holds without its folder', async (t) => {
  // The client is left out: it is a program of its own, and its folders are entries of the package, each with an index.
  const owners = new Map<string, string[]>()
  for (const { path } of program.filter(({ path }) => /^src\/(?!client\/)/.test(path))) {
    const name = basename(path)
    owners.set(name, [...(owners.get(name) ?? []), path])
  }
  t.strictSame(
    [...owners.values()].filter((paths) => paths.length > 1),
    [],
  )
})

t.test('retired words do not come back', async (t) => {
  // Each had a word of the field beside it (docs/glossary.md). In names they are parts between capitals, in comments whole words.
  const retired: readonly [word: string, instead: string, where: RegExp][] = [
    ['shelf', 'cache, or store', /./],
    ['shelves', 'caches, or stores', /./],
    ['sieve', 'filter', /./],
    ['lent', 'borrowed', /./],
    ['acceptor', 'intake', /./],
    ['twin', 'fallback', /./],
    ['repeater', 'response cache', /./],
    ['door', 'listener, or parser', /./],
    ['doors', 'listeners, or parsers', /./],
  ]
  const wrong: string[] = []
  for (const { path, text } of program) {
    for (const [word, instead, where] of retired) {
      const capital = `${word[0]?.toUpperCase()}${word.slice(1)}`
      const used = new RegExp(`(?<![A-Za-z])${word}(?![a-z])|(?<![A-Z])${capital}(?![a-z])`)
      if (where.test(path) && used.test(text)) wrong.push(`${path}: ${word}, say ${instead}`)
    }
  }
  t.strictSame(wrong, [])
})

/** Names of members in records on disk: another name would make old records unreadable. */
const storedNames: Readonly<Record<string, readonly string[]>> = {
  'src/admission/payment-records.ts': ['askedMs'],
  'src/admission/settler.ts': ['askedMs'],
  'src/payment/usdc/left-settlements.ts': ['askedMs'],
  'src/payment/usdc/shared-settlements.ts': ['askedMs'],
  'src/payment/usdc/x402-comparison.ts': ['askedMs'],
  'test/admission/payment-records.test.ts': ['askedMs'],
}

/** The names in a file: without comments and texts, but with what stands in braces in a text. */
function namesIn(text: string): Set<string> {
  const code = text.replace(
    /\/\*[\s\S]*?\*\/|\/\/.*$|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/gm,
    (found) => (found.startsWith('`') ? (found.match(/\$\{[^}]*\}/g) ?? []).join(' ') : ' '),
  )
  return new Set(code.match(/[A-Za-z_$][\w$]*/g) ?? [])
}

t.test('names say what a thing is, not that it was told, said or asked', async (t) => {
  const retired =
    /^(?:told|said|asked)(?![a-z])|(?<=[a-z\d])(?:Told|Said|Asked)(?![a-z])|^(?:Told|Said|Asked)(?![a-z])/
  t.strictSame(
    [...namesIn("const told = 'said' // asked\nif (isAsked) tell()")].filter((name) => retired.test(name)),
    ['told', 'isAsked'],
  )
  const wrong = everything
    .filter(({ path }) => path !== 'test/tidy.ts')
    .flatMap(({ path, text }) =>
      [...namesIn(text)]
        .filter((name) => retired.test(name) && storedNames[path]?.includes(name) !== true)
        .map((name) => `${path}: ${name}`),
    )
  t.strictSame(wrong, [])
})

t.test('comments say what is announced, stated or requested', async (t) => {
  const native = ['native', 'bench'].flatMap((folder) => sources(folder, /\.(cc|h)$/))
  t.ok(native.length > 60, 'C++ is read, too')
  const wrong = [...program, ...native].flatMap(({ path, text }) =>
    [...text.matchAll(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm)]
      // States that records on disk have are named in backticks, and in the diagram of an upload's states.
      .flatMap(([comment]) => comment.match(/(?<![`'])\b(?:told|said|asked)\b(?! -->)/gi) ?? [])
      .map((word) => `${path}: ${word}`),
  )
  t.strictSame(wrong, [])
})

t.test('the configuration knows nothing of the program', async (t) => {
  const wrong = program
    .filter(({ path }) => path.startsWith('config/'))
    .flatMap((source) => importsOf(source).map((target) => ({ from: source.path, target })))
    .filter(({ target }) => target.startsWith('src/'))
  t.strictSame(wrong, [])
})

t.test('each dangerous thing has one place', async (t) => {
  // The client's own, which browsers load: what the program's needs is only in Node.
  const clocks = /^src\/(actor\/clock|client\/timing)\.ts$/
  const places: [RegExp, RegExp][] = [
    [/process\.env/, /^config\/read\.ts$/],
    [/\b(setTimeout|setInterval|AbortSignal\.timeout)\(/, clocks],
    [/\bDate\.now\(|performance\.now\(/, clocks],
    [/\bnew Worker\(/, /^src\/(actor\/thread|client\/aside-hash)\.ts$/],
    [/from '[./]*native\/server\//, /^src\/http\//],
    [/from 'lmdb'/, /^src\/store\//],
    [/from 'piscina'/, /^src\/actor\//],
    [/\bprocess\.exit\(/, /^src\/(cli\/|actor\/run-thread\.ts$)/],
    [/\bconsole\./, /^$/],
    [/\beslint-disable|@ts-ignore|@ts-expect-error/, /^$/],
  ]
  const wrong: string[] = []
  for (const { path, text } of program) {
    const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    for (const [pattern, place] of places)
      if (!place.test(path) && pattern.test(code)) wrong.push(`${path} against ${pattern}`)
  }
  t.strictSame(wrong, [])
})

t.test('chance in tests comes from the one seed', async (t) => {
  const wrong = everything
    .filter(({ path }) => /^test\/(?!property|tidy)/.test(path))
    .filter(({ text }) => /from 'fast-check'|Math\.random\(|randomInt\(/.test(text))
  t.strictSame(
    wrong.map(({ path }) => path),
    [],
  )
})

t.test('what several tests share makes folders that no other call empties', async (t) => {
  // Each call of `testdir` removes what the call before it has made, also under a program that runs there.
  const wrong = everything
    .filter(({ path }) => /^test\/(?!tidy).*(?<!\.test)\.ts$/.test(path))
    .filter(({ text }) => /\btestdir\(/.test(text))
  t.strictSame(
    wrong.map(({ path }) => path),
    [],
  )
})

t.test('a test that may run twice says why, and since when', async (t) => {
  const entries = JSON.parse(readFileSync(join(root, 'test/unsteady.json'), 'utf8')) as Record<
    string,
    string
  >[]
  for (const { file = '', why = '', since = '' } of entries) {
    t.ok(existsSync(join(root, file)), file)
    t.ok(why.length > 20, `${file}: why`)
    t.match(since, /^20\d\d-\d\d-\d\d$/, `${file}: since`)
  }
})

t.test('no test has a shorter time than the runner gives to each', async (t) => {
  const shorter = /\bt\.setTimeout\((\d[\d_]*)(?![\d_]| \*)/g
  for (const { path, text } of everything.filter(({ path }) => /^test\/(?!tidy)/.test(path)))
    for (const [line, ms = ''] of text.matchAll(shorter))
      t.ok(Number(ms.replaceAll('_', '')) >= 1_200_000, `${path}: ${line}`)
})

/** The indent of a function that begins at this line, on one line or with a line for each parameter; undefined: none does. */
function functionIndent(lines: readonly string[], start: number): string | undefined {
  const line = lines[start] ?? ''
  if (/^\s*(if|for|while|switch|return|await|else)\b/.test(line)) return undefined
  const named =
    /^(\s*)(?:export )?(?:async )?(?:function\b|static |get |#?\w+(?:<[^>]*>)?\(|private |readonly ).*([{(])$/.exec(
      line,
    )
  if (named?.[1] === undefined || named[2] === '{') return named?.[1]
  const [, indent] = named
  const end = lines.slice(start + 1).find((next) => !next.startsWith(`${indent} `))
  return end?.startsWith(`${indent})`) && end.endsWith('{') ? indent : undefined
}

t.test('files, functions and lines stay small', async (t) => {
  const wrong: string[] = []
  for (const { path, lines } of program) {
    const most = path.startsWith('workers/') ? workerLinesMax : linesMax
    if (lines.length > most + 1) wrong.push(`${path} has ${lines.length} lines`)
  }
  for (const { path, lines } of everything) {
    const wide = lines.findIndex((line) => line.length > columnsMax)
    if (wide >= 0) wrong.push(`${path}:${wide + 1} is wider than ${columnsMax} columns`)
  }
  for (const { path, lines } of program) {
    lines.forEach((_, start) => {
      const indent = functionIndent(lines, start)
      if (indent === undefined) return
      const length = lines.slice(start + 1).findIndex((next) => next.startsWith(`${indent}}`)) + 2
      if (length > functionLinesMax) wrong.push(`${path}:${start + 1} is a function of ${length} lines`)
    })
  }
  t.strictSame(wrong, [])
})

t.test('no key is exported as a JSON Web Key by who made it', async (t) => {
  // Node deadlocks where its garbage collector removes the job that made the key meanwhile (src/proof/new-key.ts).
  const both = everything.filter(
    ({ text }) => /\bgenerateKeyPair(Sync)?\(/.test(text) && /export\(\{ format: 'jwk'/.test(text),
  )
  t.strictSame(
    both.map(({ path }) => path),
    ['src/proof/new-key.ts'],
  )
})

t.test('members stand in the list that they belong to', async (t) => {
  // A literal spread into another one of its kind only packs members onto a line: it says nothing more than the members do.
  const packed = /\.\.\.(?:\{[^{}]*\}|\[[^[\]]*\])\s*[,)}\]]/
  t.match('{ ...{ a, b }, c }', packed)
  t.match('f(...[a, b])', packed)
  t.notMatch('[...[1, 2].map(f)]', packed)
  t.strictSame(
    everything
      .filter(({ path, text }) => path !== 'test/tidy.ts' && packed.test(text))
      .map(({ path }) => path),
    [],
  )
})

t.test('no file is imported by nobody', async (t) => {
  const entries =
    /^(workers\/|src\/cli\/sluice(-client)?\.ts|src\/client\/(((fetch|fs|node)\/)?index|fetch\/service-worker)\.ts|native\/build)/
  const imported = new Set(
    everything.filter(({ path }) => !/^test\//.test(path)).flatMap((source) => importsOf(source)),
  )
  const unused = program.filter(({ path }) => !entries.test(path) && !imported.has(path))
  t.strictSame(
    unused.map(({ path }) => path),
    [],
  )
})

t.test('the architecture names every room and worker, and no other', async (t) => {
  const present = new Set(
    program.filter(({ path }) => /^src\/\w+\//.test(path)).map(({ path }) => roomOf(path)),
  )
  t.strictSame([...rooms].sort(), [...present].sort())
  for (const { path } of program.filter(({ path }) => path.startsWith('workers/')))
    t.ok(architecture.includes(`\`${path}\``), `${path} is named`)
})

/** Whether a text declares `name`, or has it as a member. */
function declares(text: string, name: string): boolean {
  return new RegExp(`(?<![\\w#])${name}(?: [=<(]|[(<=.:?]| extends| implements| \\{)`).test(text)
}

/** The names in code spans of a table's cell: classes, members (`Class.member`, `#member`), functions. No paths, no settings. */
function codeNamesIn(cell: string): string[] {
  return [...cell.matchAll(/`(#?[A-Za-z][\w.#]*)`/g)]
    .map(([, name = '']) => name)
    .filter((name) => !/^[A-Z\d_]+$|\.\w{2}$/.test(name))
}

t.test('the functions that the architecture names are in the files beside them', (t) => {
  const rows = [...architecture.matchAll(/^\| .*`(?:src|native)\/[\w./-]+`.*$/gm)].map(([row]) =>
    row.split('|'),
  )
  const addons = sources('native', /\.(?:ts|h|cc)$/)
  const all = [...program, ...addons].map(({ text }) => text)
  const wrong = rows.flatMap((cells) => {
    const at = cells.findIndex((cell) => /^ `(?:src|native)\//.test(cell))
    const textsOf = (cell: string): string[] =>
      [...cell.matchAll(/`((?:src|native)\/[\w./-]+\.\w+)`/g)].map(([, path = '']) =>
        readFileSync(join(root, path), 'utf8'),
      )
    const beside = textsOf(cells[at] ?? '')
    const functions = codeNamesIn(cells[at + 1] ?? '').filter(
      (name) => !name.split('.').every((part) => beside.some((text) => declares(text, part))),
    )
    // What else a row names is in its files, or a class (with its member) of any one file.
    const ofRow = textsOf(cells.join(' '))
    const isKnown = (name: string): boolean => {
      const parts = name.split('.')
      return (
        parts.every((part) => ofRow.some((text) => new RegExp(`(?<![\\w#])${part}(?!\\w)`).test(text))) ||
        all.some((text) => parts.every((part) => declares(text, part)))
      )
    }
    // Words in lower case are threads, messages and table names, too.
    const others = cells
      .flatMap((cell, index) => (index === at + 1 ? [] : codeNamesIn(cell)))
      .filter((name) => /[A-Z.#]/.test(name))
    return [...functions, ...others.filter((name) => !isKnown(name))].map(
      (name) => `${(cells[at] ?? '').trim()}: ${name}`,
    )
  })
  t.ok(rows.length > 80, `${rows.length} rows`)
  t.strictSame(wrong, [])
  t.end()
})

t.test('each exported function and class of src has a docstring', async (t) => {
  const wrong = program
    .filter(({ path }) => path.startsWith('src/'))
    .flatMap(({ path, lines }) =>
      lines.flatMap((line, at) => {
        const [, name] = /^export (?:async )?(?:function\*?|class|abstract class) (\w+)/.exec(line) ?? []
        return name === undefined || lines[at - 1]?.endsWith('*/') === true ? [] : [`${path}: ${name}`]
      }),
    )
  t.strictSame(wrong, [])
})

t.test('a docstring begins with its subject, not with `Of`', async (t) => {
  const fragment = /\/\*\*(?:\n\s*\*)? (?:Of \w|(?:The same|Likewise)\. \*\/)[^\n]*/g
  t.match('  /** Of a transaction. */', fragment)
  const wrong = program.flatMap(({ path, text }) =>
    [...text.matchAll(fragment)].map(([found]) => `${path}: ${found}`),
  )
  t.strictSame(wrong, [])
})

t.test('a decision is one page: what was measured at length stands beside it', async (t) => {
  const folder = join(root, 'docs/decisions')
  const long = readdirSync(folder).filter(
    (name) => readFileSync(join(folder, name), 'utf8').split('\n').length > 70,
  )
  t.strictSame(long, [])
})

/** The sentences of a document, or of the docstrings of a source, without tables, headings and code. */
function sentencesOf(path: string, text: string): string[] {
  const docstrings = [...text.matchAll(/\/\*\*([\s\S]*?)\*\//g)].map(([, inner = '']) =>
    inner.replace(/^\s*\* ?/gm, ''),
  )
  const prose = path.endsWith('.md') ? text.replace(/```[\s\S]*?```/g, '') : docstrings.join('\n\n')
  const lines = prose.split('\n').map((line) => (/^\s*(\||#|!\[)|^ {4,}\S/.test(line) ? '' : line))
  const paragraphs = lines
    .map((line) => line.replace(/^\s*([-*]|\d+\.)\s+/, '\n'))
    .join('\n')
    .split(/\n\s*\n/)
  return paragraphs
    .flatMap((paragraph) => paragraph.trim().split(/(?<=[.!?])["')\]*]*\s+(?=[A-Z`"'*([\d])/))
    .filter((sentence) => /\s/.test(sentence))
}

t.test('nine sentences of ten have at most 30 words', async (t) => {
  const documents = (folder: string, name: RegExp): [string, string][] =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => name.test(path) && !path.includes('node_modules'))
      .map((path) => [path, readFileSync(join(root, folder, path), 'utf8')])
  const groups: Readonly<Record<string, readonly (readonly [path: string, text: string])[]>> = {
    README: [['README.md', readFileSync(join(root, 'README.md'), 'utf8')]],
    ARCHITECTURE: [['ARCHITECTURE.md', architecture]],
    native: documents('native', /README\.md$/),
    decisions: documents('docs/decisions', /\.md$/),
    docstrings: program.map(({ path, text }) => [path, text] as const),
  }
  for (const [group, texts] of Object.entries(groups)) {
    const lengths = texts
      .flatMap(([path, text]) => sentencesOf(path, text))
      .map((one) => one.split(/\s+/).length)
    lengths.sort((one, other) => one - other)
    const length = lengths[Math.floor(lengths.length * 0.9)] ?? Number.NaN
    t.ok(lengths.length > 40 && length <= 30, `${group}: ${length} words, of ${lengths.length} sentences`)
  }
})

t.test('the changelog says in ten lines what was added, changed, fixed', async (t) => {
  const sections = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split(/^### /m).slice(1)
  const long = sections
    .filter((section) => !section.startsWith('Before you update'))
    .map((section) => [section.split('\n')[0], section.split('\n').filter((line) => line !== '').length - 1])
    .filter(([, lines = 0]) => Number(lines) > 10)
  t.ok(sections.length > 3)
  t.strictSame(long, [])
})

t.test('the glossary has at most 60 terms', async (t) => {
  const rows = [...readFileSync(join(root, 'docs/glossary.md'), 'utf8').matchAll(/^\| (?!Term |-)/gm)]
  t.ok(rows.length > 40 && rows.length <= 60, `${rows.length} terms`)
})

t.test('the page of the interface names each of its tests, and no other', async (t) => {
  const folder = join(root, 'test/interface')
  const page = readFileSync(join(folder, 'README.md'), 'utf8')
  const named = [...page.matchAll(/`([\w-]+\.test\.ts)`/g)].map(([, name = '']) => name)
  const present = readdirSync(folder).filter((name) => name.endsWith('.test.ts'))
  t.strictSame(named.sort(), present.sort())
})

t.test('every file that a comment of the source names exists', (t) => {
  const wrong: string[] = []
  for (const { path, text } of [...program, ...sources('native', /\.(cc|h)$/)]) {
    const comments = [...text.matchAll(/\/\*\*?[\s\S]*?\*\/|\/\/.*/g)].map(([comment]) => comment).join('\n')
    for (const [, named = ''] of comments.matchAll(
      /(?<![\w/.@:<-])((?:[a-z][\w-]*\/)+[\w-]+\.(?:ts|cc|h))\b/g,
    ))
      if (![named, `src/${named}`, join(dirname(path), named)].some((one) => existsSync(join(root, one))))
        wrong.push(`${path}: ${named}`)
  }
  t.strictSame(wrong, [])
  t.end()
})

t.test('every name of the program that a comment has in backticks exists', (t) => {
  /** Of others: arbundles, GraphQL. */
  const foreign = new Set(['processStream', 'ExecuteRequest'])
  const commentShape = /\/\*\*?[\s\S]*?\*\/|(?<!:)\/\/.*/g
  const all = [...everything, ...sources('native', /\.(cc|h)$/)].map(({ text }) =>
    text.replace(commentShape, ''),
  )
  const words = new Set(all.flatMap((text) => text.match(/[A-Za-z_]\w*/g) ?? []))
  const declaring = new Map<string, string[]>()
  for (const text of all)
    for (const [, name = ''] of text.matchAll(/(?:class|interface|type|const|function) (\w+)/g))
      declaring.set(name, [...(declaring.get(name) ?? []), text])
  const isWord = (name: string): boolean => words.has(name) || foreign.has(name)
  const isMember = (owner: string, member: string): boolean =>
    declaring.get(owner)?.some((text) => new RegExp(`(?<!\\w)${member}(?!\\w)`).test(text)) !== false
  t.notOk(isMember('Router', 'noSuchMember'))
  const wrong = program.flatMap(({ path, text }) => {
    const comments = (text.match(commentShape) ?? []).join('\n')
    return [...comments.matchAll(/`#?([A-Za-z]\w*)(?:\.#?([A-Za-z]\w*))?`/g)]
      .filter(([, owner = '', member]) =>
        member === undefined
          ? /[a-z][A-Z]|^[A-Z][a-z]/.test(owner) && !/\W/.test(owner) && !isWord(owner)
          : /^[A-Z]/.test(owner) && !isMember(owner, member),
      )
      .map(([found]) => `${path}: ${found}`)
  })
  t.strictSame(wrong, [])
  t.end()
})

t.test('the tests that are run once more in another way exist', async (t) => {
  const text = ['.ci/run', 'test/sanitized.mjs']
    .map((path) => readFileSync(join(root, path), 'utf8'))
    .join('\n')
  const named = [
    ...text.matchAll(/\b(?:admission|fuzz|gateway|http|native|store)\/[a-z\d-]+(?![\w.$-])/g),
  ].map(([name]) => name)
  t.ok(named.length > 15)
  t.strictSame(
    named.filter((name) => !existsSync(join(root, `test/${name}.test.ts`))),
    [],
  )
})

t.test('every file that a document names exists', async (t) => {
  const pages = ['docs/decisions', 'docs/measurements'].flatMap((folder) =>
    readdirSync(join(root, folder)).map((name) => `${folder}/${name}`),
  )
  const wrong: string[] = []
  for (const document of [
    'README.md',
    'CONTRIBUTING.md',
    'docs/ARCHITECTURE.md',
    'docs/glossary.md',
    'docs/http-api.md',
    'docs/moving-from-ar-io-node.md',
    'deploy/OPERATING.md',
    ...pages,
  ]) {
    const text = readFileSync(join(root, document), 'utf8')
    const linked = [...text.matchAll(/\]\(([\w./-]+)\)/g)].map(([, path = '']) =>
      join(dirname(document), path),
    )
    const folders = 'src|workers|native|config|bench|bin|test|docs|deploy|examples'
    const files = new RegExp(`(?<![\\w/.-])((?:dist/)?(?:${folders})/[\\w./-]+\\.\\w+)`, 'g')
    const named = [...text.matchAll(files)].map(([, path = '']) => path)
    for (const path of new Set([...linked, ...named])) {
      // What the build makes is there by its source.
      const source = path.startsWith('dist/') ? path.slice(5).replace(/\.js$/, '.ts') : path
      if (!existsSync(join(root, source))) wrong.push(`${document}: ${path}`)
    }
  }
  t.strictSame(wrong, [])
})
