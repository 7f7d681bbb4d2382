/** Certificates of the operator: what is checked, in which order they lie, and what a swap of their files does. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { checkPair, wrongTime } from '../../src/certificates/check.js'
import { CurrentCertificates } from '../../src/certificates/current.js'
import { selfSigned } from '../../src/certificates/self-signed.js'
import { authority, type Made, signed } from './made.js'

const work = t.testdir({})
const root = authority(join(work, 'root'), 'root')
const other = authority(join(work, 'other'), 'other')
const first = signed(join(work, 'first'), root, { names: ['A.example', '*.a.example'] })
const second = signed(join(work, 'second'), root, { names: ['b.example'] })
const now = Date.now()

t.test('a chain and its key are checked together', async (t) => {
  const wrong = (cert: string, key: string): string => {
    const checked = checkPair(cert, key)
    return 'wrong' in checked ? checked.wrong : ''
  }
  const pair = checkPair(first.cert + root.cert, first.key)
  if ('wrong' in pair) throw new Error(pair.wrong)
  t.strictSame(pair.names, ['a.example', '*.a.example'])
  t.equal(pair.issuer, 'root')
  t.equal(wrongTime(pair, now), undefined)
  t.match(wrongTime(pair, pair.notAfterMs), /expired/)
  t.match(wrongTime(pair, pair.notBeforeMs - 1), /valid only from/)
  t.notMatch(checkPair(first.key + first.cert, first.cert + first.key), { wrong: /./ }, 'one file with both')
  t.match(wrong(first.cert, second.key), /not that of the certificate/)
  t.match(
    wrong(first.cert + other.cert, first.key),
    /certificate 1 of the chain is not signed by certificate 2/,
  )
  t.match(wrong(root.cert + first.cert, root.key), /certificate 1 of the chain/, 'in the wrong order')
  t.match(wrong('', first.key), /no certificate/)
  t.match(wrong(first.cert, ''), /no private key/)
  t.match(wrong(first.cert.repeat(11), first.key), /more than 10/)
  t.match(wrong(first.cert.replace(/[A-Za-z0-9+/]{40}/, 'A'.repeat(40)), first.key), /./)
  const kinds: [readonly string[], RegExp | undefined][] = [
    [['rsa:2048'], undefined],
    [['rsa:1024'], /1024 bits/],
    [['ec', '-pkeyopt', 'ec_paramgen_curve:secp384r1'], undefined],
    [['ec', '-pkeyopt', 'ec_paramgen_curve:secp256k1'], /curve/],
    [['ed25519'], /kind/],
  ]
  for (const [kind, expected] of kinds) {
    const { cert, key } = signed(join(work, 'kind'), root, { kind })
    t.match(wrong(cert, key), expected ?? /^$/, kind.join(' '))
  }
  const nameless = signed(join(work, 'nameless'), root, { names: [] })
  t.match(wrong(nameless.cert, nameless.key), /names no host/)
})

t.test('a certificate made here is like one of others', async (t) => {
  const pair = await selfSigned(['localhost', '*.localhost'], now, 30)
  t.strictSame(pair.names, ['localhost', '*.localhost'])
  t.notMatch(checkPair(pair.cert, pair.key), { wrong: /./ })
})

function put(folder: string, { cert, key }: Made, names: readonly [string, string]): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, names[0]), cert)
  writeFileSync(join(folder, names[1]), key)
}

t.test('a folder in the forms of certbot and of other tools', async (t) => {
  const folder = t.testdir({ '.draft': {}, 'notes.txt': '', empty: {} })
  put(join(folder, 'live'), first, ['fullchain.pem', 'privkey.pem'])
  put(folder, second, ['b.crt', 'b.key'])
  writeFileSync(join(folder, 'c.pem'), second.cert + second.key)
  const issued = join(work, 'issued')
  put(issued, first, ['a.pem', 'a.key'])
  const all = new CurrentCertificates({ folder, issued })
  all.read(now)
  t.equal(all.pairs[0]?.certFile, join(issued, 'a.pem'), 'what was issued comes first')
  const current = new CurrentCertificates({ folder })
  t.strictSame(current.read(now), { isChanged: true, refused: [] })
  const names = () => current.pairs.map(({ names: [name] }) => name)
  t.strictSame(names(), ['b.example', 'b.example', 'a.example'])
  t.strictSame(current.read(now), { isChanged: false, refused: [] }, 'nothing changed')
  rmSync(join(folder, 'live'), { recursive: true })
  t.strictSame(current.read(now), { isChanged: true, refused: [] })
  t.strictSame(names(), ['b.example', 'b.example'])
  rmSync(folder, { recursive: true })
  const gone = current.read(now)
  t.equal(gone.isChanged, false)
  t.match(gone.refused, [{ why: /no such file/ }])
  t.strictSame(names(), ['b.example', 'b.example'], 'what is in use stays')
})

t.test('files that are swapped, or are wrong, replace nothing until they are right', async (t) => {
  const folder = t.testdir({})
  const [certFile, keyFile] = [join(folder, 'crt'), join(folder, 'key')]
  put(folder, first, ['crt', 'key'])
  const current = new CurrentCertificates({ pair: { certFile, keyFile } })
  const names = () => current.pairs.map(({ names: [name] }) => name)
  current.read(now)
  writeFileSync(join(folder, 'next'), second.cert)
  renameSync(join(folder, 'next'), certFile)
  t.match(current.read(now), { isChanged: false, refused: [{ file: certFile, why: /not that of/ }] })
  t.strictSame(current.read(now), { isChanged: false, refused: [] }, 'the same fault is named once')
  t.equal(current.refused.length, 1)
  t.strictSame(names(), ['a.example'])
  writeFileSync(keyFile, second.key)
  t.strictSame(current.read(now), { isChanged: true, refused: [] })
  t.strictSame([names(), current.refused], [['b.example'], []])
  writeFileSync(certFile, first.cert)
  writeFileSync(keyFile, first.key)
  t.match(current.read(now + 20 * 86_400_000), { isChanged: false, refused: [{ why: /expired/ }] })
  t.strictSame(names(), ['b.example'], 'an expired one replaces nothing')
  for (const target of ['/dev/zero', join(folder, 'none')]) {
    rmSync(certFile)
    symlinkSync(target, certFile)
    t.match(current.read(now), { isChanged: false, refused: [{ why: /./ }] }, target)
    t.strictSame(names(), ['b.example'])
  }
  const late = new CurrentCertificates({
    pair: { certFile: join(folder, 'late'), keyFile: join(folder, 'key') },
  })
  writeFileSync(join(folder, 'late'), first.cert)
  late.read(now + 20 * 86_400_000)
  t.equal(late.pairs.length, 1, 'an expired one is better than none')
})
