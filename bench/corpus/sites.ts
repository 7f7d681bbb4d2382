import { createHash } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Id, idOfBytes } from '../../src/format/id.js'
import type { Content, Corpus } from './corpus.js'

/** A manifest with a name: paths that lead to contents of a corpus. */
export interface Site {
  readonly name: string
  readonly id: Id
  readonly manifest: Buffer
  readonly digest: Buffer
  readonly pages: ReadonlyMap<string, Content>
}

/** Sites, and the same as folders for servers of files: `{manifest id}/{path}`, and `names/{name}` as a link to one of them. */
export interface Sites {
  readonly folder: string
  readonly all: readonly Site[]
}

function siteOf({ name, contents }: Corpus, at: number, pages: number): Site {
  const id = idOfBytes(createHash('sha256').update(`${name} site ${at}`).digest())
  const paths = new Map<string, Content>()
  for (let page = 0; page < pages; page += 1) {
    const content = contents[(at * pages + page) % contents.length]
    if (content !== undefined) paths.set(`assets/${at}/page-${page}.bin`, content)
  }
  const manifest = Buffer.from(
    JSON.stringify({
      manifest: 'arweave/paths',
      version: '0.2.0',
      paths: Object.fromEntries([...paths].map(([path, content]) => [path, { id: content.id }])),
    }),
  )
  const digest = createHash('sha256').update(manifest).digest()
  return { name: `site-${at}`, id, manifest, digest, pages: paths }
}

/** `count` sites of `pages` pages each over the contents of a corpus; their folders are made on first need. */
export function sitesOf(corpus: Corpus, count: number, pages: number): Sites {
  const folder = join(dirname(corpus.filesFolder), `sites-${count}-${pages}`)
  const all = Array.from({ length: count }, (_, at) => siteOf(corpus, at, pages))
  if (!existsSync(folder)) {
    const draft = `${folder}.draft`
    rmSync(draft, { recursive: true, force: true })
    mkdirSync(join(draft, 'names'), { recursive: true })
    for (const [at, { name, id, pages: paths }] of all.entries()) {
      mkdirSync(join(draft, id, 'assets', String(at)), { recursive: true })
      for (const [path, content] of paths)
        linkSync(join(corpus.filesFolder, content.id), join(draft, id, path))
      symlinkSync(join('..', id), join(draft, 'names', name))
    }
    renameSync(draft, folder)
  }
  return { folder, all }
}
