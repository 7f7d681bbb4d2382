/** The client against the program's own services: what it uploads is there, proven, at once. */
import { join } from 'node:path'
import t from 'tap'
import { SluiceClient } from '../../src/client/client.js'
import { ProvingFetcher } from '../../src/client/fetch/index.js'
import { uploadFolder } from '../../src/client/folder.js'
import { fileStore } from '../../src/client/node/index.js'
import { sourceOfBytes } from '../../src/client/payload.js'
import { signerOfEthereum, signerOfSolana } from '../../src/client/signer.js'
import { run } from '../flow/running.js'

t.test('uploads are received, found and proven; folders are opened by their manifest', async (t) => {
  const folder = t.testdir({ data: {} })
  const running = await run(t, join(folder, 'data'))
  const { gateway = '', upload: uploadUrl = '', payment: paymentUrl = '' } = running.urls
  const fetcher = new ProvingFetcher({ gatewayUrls: [gateway] })
  for (const signer of [
    await signerOfEthereum('01'.repeat(32)),
    await signerOfSolana(new Uint8Array(32).fill(1)),
  ]) {
    const client = new SluiceClient({ uploadUrl, paymentUrl, gatewayUrls: [gateway], signer })
    const tags = [{ name: 'Content-Type', value: 'text/plain' }]
    const receipt = await client.upload({ data: `from ${signer.address}`, dataItemOpts: { tags } })
    t.equal(receipt.winc, '0')
    const response = await fetcher.fetch(receipt.id)
    t.equal(await response.text(), `from ${signer.address}`)
    t.equal(response.headers.get('x-verified'), 'owner')
    t.equal((await client.getBalance()).winc, '0')
    t.match((await client.getUploadCosts({ bytes: [1000] }))[0], { winc: /^\d+$/ })
    t.ok((await client.getSupportedCurrencies()).supportedCurrencies.includes('usd'))
    t.match(await client.getPaymentHistory(), { payments: [], hasMore: false })
  }
  await t.test('what is in no block yet and too long to be held is read twice', async (t) => {
    const client = new SluiceClient({
      uploadUrl,
      paymentUrl,
      gatewayUrls: [gateway],
      signer: await signerOfEthereum('03'.repeat(32)),
    })
    const data = Buffer.from(Array.from({ length: 90_000 }, (_, at) => at % 251))
    const { id } = await client.upload({ data })
    const whole = await fetcher.fetch(id, { holdBytesMax: 1000 })
    t.equal(whole.headers.get('x-verified'), 'owner')
    t.ok(data.equals(Buffer.from(await whole.arrayBuffer())))
    const range = await fetcher.fetch(id, { range: { start: 70_000, end: 70_099 } })
    t.equal(range.status, 206)
    t.equal(range.headers.get('content-range'), 'bytes 70000-70099/90000')
    t.ok(data.subarray(70_000, 70_100).equals(Buffer.from(await range.arrayBuffer())))
    let requests = 0
    const changing = new ProvingFetcher({
      gatewayUrls: [gateway],
      fetch: async (url, init) => {
        const response = await fetch(url, init)
        if (!url.includes('/raw/') || requests++ < 3) return response
        const bytes = new Uint8Array(await response.arrayBuffer())
        bytes[7] = (bytes[7] ?? 0) ^ 1
        return new Response(bytes, response)
      },
    })
    const changed = await changing.fetch(id, { holdBytesMax: 1000 })
    await t.rejects(changed.arrayBuffer(), 'the second time it is another content')
  })
  const resume = fileStore(join(folder, 'store'))
  const signer = await signerOfEthereum('02'.repeat(32))
  const client = new SluiceClient({ uploadUrl, paymentUrl, gatewayUrls: [gateway], signer, resume })
  const files = ['index.html', 'a.css'].map((path) => ({
    path,
    source: sourceOfBytes(Buffer.from(`this is ${path}`)),
    contentType: 'text/plain',
  }))
  const { manifestResponse } = await uploadFolder(client, { files })
  const page = await fetcher.fetch(`${manifestResponse?.id}/a.css`)
  t.equal(await page.text(), 'this is a.css')
  const again = await uploadFolder(client, { files })
  t.equal(again.folderIndexSummary.uploadedFiles, 0)
})
