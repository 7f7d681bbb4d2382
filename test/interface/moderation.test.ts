/** What the operator blocks is gone from every thread with the answer to the order, and stays gone whatever happens. */
import { randomBytes } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { pause } from '../../src/actor/clock.js'
import { clientOf } from '../devnet/posting.js'
import { eventually } from '../eventually.js'
import { payerAt } from '../flow/payer.js'
import { type Running, run, seeded, sluice, twoEdges } from '../flow/running.js'
import { askAt } from '../gateway/rig.js'

const key = 'a-key-for-the-tests'

interface Answered {
  readonly status: number
  readonly body: string
}

function order(
  running: Running,
  method: string,
  path: string,
  body?: unknown,
  shown = key,
): Promise<Answered> {
  const { hostname, port } = new URL(running.urls.gateway ?? '')
  const headers = { authorization: `Bearer ${shown}` }
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      hostname,
      port,
      method,
      headers,
      path: `/gateway/admin/${path}`,
      agent: false,
    })
    request.on('response', (answer) => {
      if (answer.headers['cache-control'] !== 'no-store') reject(new Error('an admin answer may be cached'))
      const pieces: Buffer[] = []
      answer.on('data', (piece: Buffer) => pieces.push(piece))
      answer.on('close', () =>
        resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(pieces).toString() }),
      )
    })
    request.on('error', reject)
    request.end(body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body))
  })
}

/** Statuses over connections of their own: the kernel spreads them over both edge threads. */
async function statuses({ urls }: Running, path: string): Promise<number[]> {
  const answers = await Promise.all(Array.from({ length: 12 }, () => askAt(urls.gateway ?? '', path)))
  return [...new Set(answers.map(({ status }) => status))]
}

const why = { notes: 'a test', source: 'tests' }

t.test(
  'blocked content is gone from all threads at once, from every way to it, and after kill -9',
  async (t) => {
    const path = t.testdir()
    const environment = { ...seeded, SERVICES: 'gateway', ...twoEdges, ADMIN_API_KEY: key }
    const first = await run(t, path, environment)
    const { site = '', page = '', item = '', nested = '' } = first.examples
    t.strictSame(await statuses(first, `/${page}`), [200])
    t.strictSame(await order(first, 'PUT', 'block-data', { id: page, ...why }), {
      status: 200,
      body: '{"message":"Content blocked"}',
    })
    for (const way of [
      `/${page}`,
      `/raw/${page}`,
      `/tx/${page}`,
      `/tx/${page}/data`,
      `/gateway/offsets/${page}`,
    ]) {
      t.strictSame(await statuses(first, way), [451], way)
    }
    t.strictSame(await statuses(first, `/${site}/`), [451], 'through the manifest')
    const offsets = await askAt(first.urls.gateway ?? '', `/gateway/offsets/${nested}`)
    const { rootTxId } = JSON.parse(offsets.body.toString()) as { rootTxId: string }
    await order(first, 'PUT', 'block-data', { id: rootTxId, ...why })
    await first.kill()

    const second = await run(t, path, environment)
    t.strictSame(await statuses(second, `/${page}`), [451])
    for (const inside of [item, nested]) {
      const { status, body } = await askAt(second.urls.gateway ?? '', `/gateway/offsets/${inside}`)
      const root = status === 200 ? (JSON.parse(body.toString()) as { rootTxId: string }).rootTxId : rootTxId
      t.strictSame(
        await statuses(second, `/${inside}`),
        [root === rootTxId ? 451 : 200],
        'an item of a bundle',
      )
    }
    t.strictSame(await order(second, 'PUT', 'unblock-data', { id: page }), {
      status: 200,
      body: '{"message":"Content unblocked"}',
    })
    t.strictSame(await statuses(second, `/${page}`), [200])

    // Beside the running gateway, by command.
    const beside = { DATA_PATH: path }
    t.match(await sluice(['moderation', 'release', '--source', 'tests'], beside), {
      code: 0,
      out: /released: all of tests, 1/,
    })
    await eventually(
      'the nested item is served',
      async () => (await statuses(second, `/${nested}`)).join() === '200',
    )
    const list = join(path, 'list.txt')
    writeFileSync(list, `# bad things\n${page}\nrubbish.of.a.line\n${'ab'.repeat(32)}\nSomeName\n`)
    t.match(await sluice(['moderation', 'import', list, '--source', 'may'], beside), {
      code: 0,
      out: '4 read: 3 blocked, 0 were blocked already, 1 not understood\n',
    })
    await eventually('the page is blocked', async () => !(await statuses(second, `/${page}`)).includes(200))
    t.match((await sluice(['moderation', 'list'], beside)).out, /name {2}somename .*may/)
    t.match(JSON.parse((await order(second, 'GET', 'moderation?limit=2')).body), {
      counts: { id: 1, hash: 1, name: 1 },
      entries: { length: 2 },
    })
    const audit = JSON.parse((await order(second, 'GET', 'moderation/audit')).body) as {
      lines: { action: string }[]
    }
    t.strictSame(
      audit.lines.map(({ action }) => action),
      ['import', 'release', 'release', 'block', 'block'],
    )
  },
)

async function blockedChunks(t: Test, running: Running, key: string): Promise<void> {
  const { gateway = '', devnet: node = '' } = running.urls
  const id = await (await payerAt(node)).post(randomBytes(300_000), {})
  const { offset } = await clientOf(gateway).chunks.getTransactionOffset(id)
  // Each thread learns of the block by itself.
  while ((await statuses(running, `/chunk/${offset}`)).join() !== '200') await pause(20)
  await order(running, 'PUT', 'block-data', { id, ...why }, key)
  t.strictSame(await statuses(running, `/chunk/${offset}`), [451])
  t.strictSame(await statuses(running, `/chunk/${offset}/data`), [451])
  t.strictSame(await statuses(running, `/tx/${id}/offset`), [451])
}

t.test(
  'without its key the admin routes say nothing, and rubbish is told what is wrong with it',
  async (t) => {
    const path = t.testdir()
    const still = { SERVICES: 'gateway', DEVNET_BLOCK_MS: '0' }
    const running = await run(t, path, { ...still, ...twoEdges })
    const kept = join(path, 'keys', 'admin.key')
    t.equal(statSync(kept).mode & 0o777, 0o600)
    const own = readFileSync(kept, 'utf8').trim()
    t.notOk(JSON.stringify(running.log).includes(own), 'the log never shows it')
    t.ok(
      running.log.some((line) => line.path === kept),
      'its place is told',
    )
    for (const shown of ['', `${own}x`, own.slice(1)]) {
      t.strictSame(await order(running, 'GET', 'debug', undefined, shown), {
        status: 401,
        body: 'Unauthorized',
      })
      t.equal((await order(running, 'PUT', 'nothing', undefined, shown)).status, 401)
    }
    const put = (route: string, body: unknown): Promise<Answered> => order(running, 'PUT', route, body, own)
    const id = randomBytes(32).toString('base64url')
    const impossible =
      "'name' cannot exist: names have a-z, 0-9 and -, and _ between undername and name (other scripts as punycode, xn--)"
    const rubbish: [string, unknown, number, string][] = [
      ['block-data', undefined, 400, "Must provide 'id' or 'hash'"],
      ['block-data', {}, 400, "Must provide 'id' or 'hash'"],
      ['block-data', { id: 5 }, 400, "'id' and 'hash' must be strings"],
      ['block-data', { id: 'short', ...why }, 400, "'id' must be 43 characters of base64url"],
      ['block-data', { hash: '../../x', ...why }, 400, "'hash' must be 43 characters of base64url"],
      ['block-data', { id }, 400, "'source' must be a non-empty string"],
      ['block-data', { id, source: 'x', notes: {} }, 400, "'notes' must be a string"],
      ['block-data', { id, source: 'x', notes: 'n'.repeat(5000) }, 400, "'notes' exceeds maximum length"],
      ['block-data', '[', 400, 'Malformed JSON'],
      ['block-data', [1], 400, 'Must provide a JSON object'],
      ['block-data', 'x'.repeat(100_001), 413, 'Content too large'],
      ['unblock-data', {}, 400, "Must provide 'id' or 'hash'"],
      ['block-name', { name: '' }, 400, "'name' must be a non-empty string"],
      ['block-name', { name: 7 }, 400, "'name' must be a non-empty string"],
      ['block-name', { name: 'n'.repeat(52), ...why }, 400, "'name' exceeds maximum length"],
      ['block-name', { name: 'naïve', ...why }, 400, impossible],
      ['block-name', { name: 'name_', ...why }, 400, impossible],
      ['unblock-name', {}, 400, "'name' must be a non-empty string"],
      ['unblock-name', { name: 'never-blocked' }, 200, '{"message":"Name unblocked"}'],
      ['block-name', { name: 'Some_Name', ...why }, 200, '{"message":"Name blocked"}'],
      ['nothing', {}, 404, 'Not found'],
      ['debug', {}, 405, 'Method not allowed'],
    ]
    for (const [route, body, status, expected] of rubbish) {
      t.strictSame(
        await put(route, body),
        { status, body: expected },
        `${route} ${JSON.stringify(body)?.slice(0, 40)}`,
      )
    }
    t.equal((await order(running, 'GET', 'debug', undefined, own)).status, 200)
    await t.test('chunks of a blocked transaction are not served', (t) => blockedChunks(t, running, own))
  },
)
