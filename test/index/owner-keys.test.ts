import t from 'tap'
import { writeBatch } from '../../src/index/batch-writer.js'
import { CheckedFile } from '../../src/index/checked-file.js'
import { RowBatch } from '../../src/index/row-batch.js'
import { sha256 } from '../../src/proof/digest.js'
import { scratch } from '../scratch.js'
import { newPath, opened } from './model.js'

const count = 5000
const hashed = (name: string): Buffer => Buffer.from(sha256(Buffer.from(name)))

/** Addresses as hashes are, and as somebody could choose them against a search that counts on that. */
const spreads: Readonly<Record<string, (address: Buffer, at: number) => Buffer>> = {
  even: (address) => address,
  'alike but for their ends': (address) => address.fill(7, 0, 20),
  'nearly all at one end': (address, at) => (at < 10 ? address : address.fill(0xff, 0, 3)),
  'growing by powers': (address, at) => {
    address.writeUInt32BE(Math.floor(2 ** (at / (count / 32))))
    return address
  },
}

for (const [name, spread] of Object.entries(spreads)) {
  t.test(`the key of an address is found in few looks, where addresses are ${name}`, async (t) => {
    const addresses = Array.from({ length: count }, (_, at) => spread(hashed(`address ${at}`), at))
    const batch = new RowBatch()
    for (const [at, address] of addresses.entries()) batch.addOwnerKey(address, Buffer.from(`key ${at}`))
    const path = newPath(scratch('index'))
    writeBatch(batch, path)
    const segment = opened(path)
    let looks = 0
    const { at: look } = CheckedFile.prototype
    CheckedFile.prototype.at = function at(start, end) {
      looks += 1
      return look.call(this, start, end)
    }
    const wrong = addresses.filter((address, at) => segment.ownerKey(address)?.toString() !== `key ${at}`)
    t.same(wrong, [])
    // Two looks into the file for each address that is compared, and four for the key.
    t.comment(`${(looks / count).toFixed(1)} looks each`)
    t.ok(looks / count <= 2 * (4 + Math.ceil(Math.log2(count))) + 4)
    if (name === 'even') t.ok(looks / count < 16, 'fewer than by halving')
    for (let at = 0; at < 1000; at += 1)
      if (segment.ownerKey(spread(hashed(`absent ${at}`), at)) !== undefined) t.fail(`absent ${at}`)
    CheckedFile.prototype.at = look
    segment.close()
  })
}
