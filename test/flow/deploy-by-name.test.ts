/** Documentation goes up as one bundle and under a name, is opened by it, and goes up again from another machine. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { signerOfEthereum } from '../../src/client/signer.js'
import { openBrowser, withoutBrowser as skip } from '../browser.js'
import { eventually } from '../eventually.js'
import { run, sluice } from './running.js'

const docs = fileURLToPath(new URL('../../../docs/client/', import.meta.url))

interface Deployed {
  readonly id: string
  readonly named: string
  readonly totalFiles: number
  readonly uploadedFiles: number
  readonly reusedFiles: number
}

/** A page for each document, with links between them, one style and one image: what a documentation generator makes. */
function build(folder: string): number {
  mkdirSync(folder)
  const names = readdirSync(docs).filter((name) => name.endsWith('.md'))
  for (const name of names) {
    const text = readFileSync(join(docs, name), 'utf8').replaceAll('&', '&amp;').replaceAll('<', '&lt;')
    const linked = text.replace(/\[([^\]]+)\]\(([\w-]+)\.md[^)]*\)/g, '<a href="$2.html">$1</a>')
    const [, title = name] = /^# (.*)/.exec(text) ?? []
    const head = `<!doctype html><meta charset="utf-8"><title>${title}</title><link rel="stylesheet" href="style.css">`
    const file = name === 'README.md' ? 'index.html' : name.replace('.md', '.html')
    writeFileSync(join(folder, file), `${head}<pre>${linked}</pre>`)
  }
  writeFileSync(join(folder, 'style.css'), 'pre { color: rgb(1, 2, 3) }')
  return names.length + 1
}

t.test('documentation is opened by its name, and only what changed goes up again', { skip }, async (t) => {
  const folder = t.testdir({ key: '07'.repeat(32) })
  chmodSync(join(folder, 'key'), 0o600)
  const site = join(folder, 'docs')
  const files = build(site)
  const { address } = await signerOfEthereum('07'.repeat(32))
  const allowed = await sluice(['names', 'grant', 'docs', address], { DATA_PATH: join(folder, 'data') })
  t.equal(allowed.code, 0, allowed.err)
  // No block within the test: what the second deploy finds, it finds by the upload service.
  const { urls } = await run(t, join(folder, 'data'), { DEVNET_SEED: 'false', DEVNET_BLOCK_MS: '3600000' })
  const { upload = '', payment = '', gateway = '' } = urls
  const places = ['--upload', upload, '--payment', payment, '--gateway', gateway]
  const deploy = async (home: string): Promise<Deployed> => {
    const words = [
      'deploy',
      site,
      '--name',
      'docs',
      '--ttl',
      '0',
      '--bundle',
      '--json',
      '--key',
      join(folder, 'key'),
    ]
    const environment = { HOME: join(folder, home) }
    const { code, out, err } = await sluice([...words, ...places], environment)
    t.equal(code, 0, err)
    return JSON.parse(out) as Deployed
  }
  const first = await deploy('one')
  t.match(first, { totalFiles: files, uploadedFiles: files, reusedFiles: 0 })

  const opened = await openBrowser(t)
  const page = await opened.newPage()
  // What lies in the bundle is served some moments after its receipt.
  await eventually(
    'the deployed file is served',
    async () => (await fetch(`${gateway}/${first.id}/style.css`)).ok,
  )
  await eventually('the name is served', async () => (await page.goto(first.named))?.status() === 200)
  t.equal(await page.title(), 'The client')
  t.equal(await page.evaluate("getComputedStyle(document.querySelector('pre')).color"), 'rgb(1, 2, 3)')
  await page.click('text=getBalance')
  await page.waitForURL('**/get-balance.html')
  t.equal(await page.title(), 'getBalance')

  writeFileSync(join(site, 'get-balance.html'), '<!doctype html><title>changed</title>')
  // Another machine has no journal: only the service knows what lies in the bundle of the first.
  const second = await deploy('two')
  t.match(second, { totalFiles: files, uploadedFiles: 1, reusedFiles: files - 1 })
  await eventually('the name leads to the new page', async () => {
    await page.goto(new URL('get-balance.html', first.named).href)
    return (await page.title()) === 'changed'
  })
  const third = await deploy('three')
  t.match(third, { id: second.id, uploadedFiles: 0, reusedFiles: files })
})
