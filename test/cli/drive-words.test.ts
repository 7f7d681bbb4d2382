/** Commands on drives, against the program's own services, by a wallet of its own. */
import { chmodSync, cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { eventually } from '../eventually.js'
import { type Running, run, sluice } from '../flow/running.js'

const wallet = fileURLToPath(new URL('../../../test/fixture/rsa-4096.jwk.json', import.meta.url))

interface Listed {
  readonly entries: readonly { readonly path: string; readonly isHidden: boolean; readonly size?: number }[]
  readonly problems: readonly object[]
}

/** The command with the places of a running program; it must succeed unless said. */
function commander(t: Test, folder: string, { urls }: Running, more: readonly string[]) {
  const { upload = '', payment = '', gateway = '' } = urls
  const places = ['--upload', upload, '--payment', payment, '--gateway', gateway]
  const key = ['--key', join(folder, 'wallet.json')]
  return async (words: readonly string[], code = 0): Promise<string> => {
    const line = ['drive', ...words, ...places, ...key, ...more]
    const ended = await sluice(line, { HOME: folder, DATA_PATH: join(folder, 'data') })
    t.equal(ended.code, code, `drive ${words.join(' ')}: ${ended.err}`)
    return ended.out.trim()
  }
}

const folder = t.testdir({ data: {}, 'sea.txt': 'the sea', 'word.txt': 'pé & ß\n', 'other.txt': 'guess' })
cpSync(wallet, join(folder, 'wallet.json'))
for (const name of ['wallet.json', 'word.txt', 'other.txt']) chmodSync(join(folder, name), 0o600)
const running = await run(t, join(folder, 'data'), { DEVNET_BLOCK_MS: '0' })

async function useDrive(
  t: Test,
  folder: string,
  drive: ReturnType<typeof commander>,
  id: string,
): Promise<void> {
  const listed = async (): Promise<Listed> => JSON.parse(await drive(['ls', id, '--all', '--json'])) as Listed
  const paths = async (): Promise<string> => (await listed()).entries.map(({ path }) => path).join(' ')
  await drive(['mkdir', id, 'summer/coast'])
  await drive(['put', id, join(folder, 'sea.txt'), 'summer/coast/sea.txt'])
  t.equal(await paths(), 'summer summer/coast summer/coast/sea.txt')
  await drive(['get', id, 'summer/coast/sea.txt', '--output', join(folder, 'got.txt')])
  t.equal(readFileSync(join(folder, 'got.txt'), 'utf8'), 'the sea')
  await drive(['mv', id, 'summer/coast/sea.txt', 'summer'])
  await drive(['rename', id, 'summer/sea.txt', 'ocean.txt'])
  writeFileSync(join(folder, 'new.txt'), 'the ocean, larger')
  await drive(['put', id, join(folder, 'new.txt'), 'summer/ocean.txt'])
  t.equal(await drive(['get', id, 'summer/ocean.txt']), 'the ocean, larger', 'a new version')
  await drive(['hide', id, 'summer/coast'])
  const { entries, problems } = await listed()
  t.strictSame(problems, [])
  t.match(entries.find(({ path }) => path === 'summer/coast')?.isHidden, true)
  t.match(await drive(['ls', id, 'summer']), /^ *17 {2}summer\/ocean.txt/m)
  t.notMatch(await drive(['ls', id, 'summer']), /coast/)
  await drive(['get', id, 'summer/none.txt'], 3)
  await drive(['mv', id, 'summer', 'summer/coast'], 2)
  await drive(['rename', id, 'summer'], 2)
}

t.test('a public drive is made, filled, changed and listed by commands', async (t) => {
  const drive = commander(t, folder, running, [])
  const id = await drive(['create', 'photos'])
  await useDrive(t, folder, drive, id)
  t.match(await drive(['drives']), `${id}  public   photos`)
  await fetch(`${running.urls.devnet}/mine/1`)
  // A snapshot has what is in blocks.
  await eventually('the drive is in a block', async () => {
    await fetch(`${running.urls.devnet}/mine/1`)
    return !(await drive(['ls', id])).includes('not in a block yet')
  })
  await drive(['snapshot', id])
  t.match(await drive(['ls', id, 'summer']), /ocean.txt/)
  await drive(['create'], 2)
  await drive(['fly', id], 2)
})

t.test('a private drive opens by its password only', async (t) => {
  const drive = commander(t, folder, running, ['--password-file', join(folder, 'word.txt')])
  const id = await drive(['create', 'secrets', '--private'])
  await useDrive(t, folder, drive, id)
  t.match(await drive(['share', id, 'summer/ocean.txt', '--json']), /"fileKey":"[\w-]{43}"/)
  t.match(await drive(['drives']), `${id}  private  (encrypted)`)
  const wrong = commander(t, folder, running, ['--password-file', join(folder, 'other.txt')])
  await wrong(['ls', id], 1)
  const none = commander(t, folder, running, [])
  await none(['ls', id], 2)
})

t.test('the program ends when it is told to', async (t) => {
  t.equal(await running.stop(), 0)
})
