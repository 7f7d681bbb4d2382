/** The page of people who upload in a browser. It asks this service alone, and no key ever leaves it. */
import { creditsText, uploadFolder } from 'sluice/client'
import { clientOf, costOf, costText, placeToBuy } from './costs.js'
import { chosenFiles, commonFolder, droppedFiles, sorted } from './files.js'
import { forgetKey, keepKey, keptKey, newKey, signerOfText, wallets } from './keys.js'
import { button, byId, bytes, element, save, shortened } from './view.js'

const info = fetch('/info').then((answer) => answer.json())
/** All that was chosen; `chosen` without what is left out of it. */
let offered = []
let chosen = []
/** The last requested price: of which files, and how much. */
let quoted = {}
let signer
let wallet
let isBusy = false

function say(text, kind = '') {
  byId('said').textContent = text
  byId('said').className = kind
}

function isUnpaid(error) {
  return ['insufficient-credits', 'free-tier-exhausted'].includes(error.code)
}

/** Errors of the client bring advice; all others are shown as they are. */
function textOf(error) {
  if (isUnpaid(error))
    return `too few credits, and the free bytes do not reach. Credits can be bought for ${signer.address}, then choose it again.`
  return error.advice === undefined ? error.message : `${error.message}. What helps: ${error.advice}.`
}

async function showKey() {
  const place = byId('key')
  const kept = keptKey()
  const change = element('label', { class: 'button' }, 'Use a key from a file')
  const chooser = element('input', { type: 'file', accept: '.json,.key,.txt,application/json,text/plain' })
  chooser.addEventListener('change', () => void useFile(chooser.files[0]))
  change.append(chooser)
  const others = wallets().map(({ name, open }) =>
    button(`Use the ${name}`, () => void useWallet(name, open)),
  )
  if (wallet !== undefined) {
    const own = button('Use a key of this browser instead', () => {
      wallet = undefined
      signer = undefined
      void showKey()
    })
    const line = element('p', {}, [
      `${wallet}: `,
      element('code', { title: signer.address }, shortened(signer.address)),
    ])
    place.replaceChildren(line, element('p', { class: 'row' }, [own]))
    return
  }
  if (kept === undefined) {
    signer = undefined
    const line =
      'A key is made in this browser with the first upload. It shows that the uploads are yours, and stays here.'
    place.replaceChildren(
      element('p', { class: 'quiet' }, line),
      element('p', { class: 'row' }, [change, ...others]),
    )
    return
  }
  signer = await signerOfText(kept)
  const line = element('p', {}, [
    'Kept in this browser: ',
    element('code', { title: signer.address }, shortened(signer.address)),
  ])
  const isWallet = kept.trim().startsWith('{')
  const saving = button('Save the key as a file', () =>
    save(
      isWallet ? 'wallet.json' : 'sluice.key',
      isWallet ? 'application/json' : 'text/plain',
      `${kept.trim()}\n`,
    ),
  )
  const forgetting = button('Forget it', () => {
    if (!confirm('Without a file of the key nobody can upload as its owner again. Forget it?')) return
    forgetKey()
    void showKey()
  })
  place.replaceChildren(line, element('p', { class: 'row' }, [saving, change, forgetting, ...others]))
}

async function useFile(file) {
  if (file === undefined) return
  try {
    const text = await file.text()
    await signerOfText(text)
    keepKey(text)
    await showKey()
  } catch (error) {
    say(textOf(error), 'bad')
  }
}

async function useWallet(name, open) {
  try {
    signer = await open()
    wallet = name
    await showKey()
  } catch (error) {
    say(textOf(error), 'bad')
  }
}

function choose(files) {
  if (isBusy) return
  offered = files
  byId('hidden').checked = false
  void showChosen()
}

async function showChosen() {
  const all = offered
  const folder = commonFolder(all)
  const { taken, leftOut, hidden } = await sorted(all, folder, byId('hidden').checked)
  if (offered !== all) return
  chosen = taken
  byId('chosen').hidden = all.length === 0
  byId('go').disabled = isBusy || taken.length === 0
  const total = taken.reduce((sum, { file }) => sum + file.size, 0)
  const what = `${taken.length === 1 ? '1 file' : `${taken.length} files`}, ${bytes(total)}`
  byId('what').textContent = folder === '' ? what : `Folder ${folder} ${what}`
  byId('names').replaceChildren(...shortList(taken.map(({ path, file }) => `${path}, ${bytes(file.size)}`)))
  byId('left').hidden = leftOut.length === 0
  byId('leftnames').replaceChildren(...shortList(leftOut))
  byId('hiddenrow').hidden = hidden === 0
  byId('cost').textContent = taken.length === 0 ? 'Nothing to upload.' : 'Asking what it costs…'
  if (taken.length === 0) return
  const cost = await priceOf(taken, folder !== '').catch((error) => textOf(error))
  if (chosen === taken) byId('cost').textContent = cost
}

function shortList(lines) {
  const shown = lines.slice(0, 8).map((line) => element('li', {}, line))
  if (lines.length > 8) shown.push(element('li', { class: 'quiet' }, `and ${lines.length - 8} more`))
  return shown
}

async function priceOf(files, isFolder) {
  const { gateway } = await info
  const cost = await costOf(await clientOf(gateway, signer), files, isFolder)
  quoted = { files, winc: cost.winc }
  return costText(cost)
}

async function ready() {
  if (signer !== undefined) return signer
  if (keptKey() === undefined) keepKey(newKey())
  await showKey()
  return signer
}

async function upload() {
  if (isBusy || chosen.length === 0) return
  isBusy = true
  byId('go').disabled = true
  say('')
  try {
    const { gateway } = await info
    const client = await clientOf(gateway, await ready())
    const files = chosen
    const folder = commonFolder(offered)
    offered = []
    chosen = []
    byId('chosen').hidden = true
    if (folder !== '') await sendFolder(client, gateway, folder, files)
    else for (const { path, file } of files) await sendFile(client, gateway, path, file)
  } catch (error) {
    say(textOf(error), 'bad')
  }
  isBusy = false
  byId('go').disabled = false
}

/** One line of the list: a name, how far it is, and what came of it. */
function newLine(name, size) {
  const state = element('span', { class: 'quiet', role: 'status' }, 'waits')
  const bar = element('progress', { max: '1', value: '0', 'aria-label': name })
  const outcome = element('div', {})
  byId('list').prepend(
    element('li', {}, [
      element('p', {}, [element('strong', {}, name), ` ${bytes(size)} `, state]),
      bar,
      outcome,
    ]),
  )
  byId('uploads').hidden = false
  return {
    at(share, text) {
      bar.value = share
      state.textContent = text
    },
    async failed(client, error) {
      bar.remove()
      state.textContent = textOf(error)
      state.className = 'bad'
      const place = isUnpaid(error) ? await placeToBuy(client, signer.address) : undefined
      if (place === undefined) return
      const buy = element(
        'a',
        { class: 'button', href: place, target: '_blank', rel: 'noopener' },
        'Buy credits',
      )
      outcome.replaceChildren(element('p', { class: 'row' }, [buy]))
    },
    done(gateway, id, path, receipt) {
      bar.remove()
      state.textContent = receipt === undefined ? 'here already' : 'receipt verified'
      state.className = 'good'
      const link = `${gateway.replace(/\/$/, '')}/${id}${path}`
      const copying = button('Copy the link', () => void navigator.clipboard.writeText(link))
      const saving = button('Save the receipt', () =>
        save(`receipt-${id}.json`, 'application/json', `${JSON.stringify(receipt, undefined, 2)}\n`),
      )
      const charged = receipt === undefined || receipt.winc === '0' ? '' : `, ${creditsText(receipt.winc)}`
      outcome.replaceChildren(
        element('p', {}, [element('a', { href: link, target: '_blank', rel: 'noopener' }, link)]),
        element('p', { class: 'row' }, [copying, ...(receipt === undefined ? [] : [saving])]),
        ...(receipt === undefined
          ? []
          : [
              element(
                'p',
                { class: 'quiet' },
                `In a block by height ${receipt.deadlineHeight}, as the service has signed${charged}.`,
              ),
            ]),
      )
    },
  }
}

const steps = { signing: 'signing', upload: 'sending' }

async function sendFile(client, gateway, path, file) {
  const line = newLine(path, file.size)
  try {
    const tags = [
      { name: 'Content-Type', value: file.type || 'application/octet-stream' },
      { name: 'App-Name', value: 'Sluice' },
    ]
    const task = client.uploadFile({ file, dataItemOpts: { tags } })
    for await (const event of task) {
      const step = steps[event.type]
      if (step === undefined) continue
      // Signing reads all bytes once, sending once more.
      const share = event.totalBytes === 0 ? 1 : event.processedBytes / event.totalBytes
      line.at(event.type === 'signing' ? share / 2 : 0.5 + share / 2, `${step}, ${Math.floor(share * 100)} %`)
    }
    const receipt = await task
    line.done(gateway, receipt.id, '', receipt)
  } catch (error) {
    await line.failed(client, error)
  }
}

async function sendFolder(client, gateway, folder, files) {
  const total = files.reduce((sum, { file }) => sum + file.size, 0)
  const line = newLine(folder, total)
  try {
    const task = uploadFolder(client, {
      files: files.map(({ path, file }) => ({
        path: path.slice(folder.length),
        source: { size: file.size, open: (from) => streamOf(file.slice(from)) },
        contentType: file.type || 'application/octet-stream',
      })),
      dataItemOpts: { tags: [{ name: 'App-Name', value: 'Sluice' }] },
      // Never more than what was shown.
      onPlan: async () => (quoted.files === files ? quoted.winc : (await costOf(client, files, true)).winc),
    })
    for await (const event of task) {
      if (event.type !== 'folder') continue
      const { processedFiles, totalFiles, processedBytes, totalBytes, currentPhase } = event
      const text = currentPhase === 'hashing' ? 'reading' : `${processedFiles} of ${totalFiles} files`
      line.at(totalBytes === 0 ? 1 : processedBytes / totalBytes, text)
    }
    const { manifestResponse } = await task
    line.done(gateway, manifestResponse.id, '/', manifestResponse.receipt)
  } catch (error) {
    await line.failed(client, error)
  }
}

async function* streamOf(blob) {
  const reader = blob.stream().getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel()
  }
}

const drop = byId('drop')
for (const name of ['dragenter', 'dragover'])
  drop.addEventListener(name, (event) => {
    event.preventDefault()
    drop.classList.add('over')
  })
for (const name of ['dragleave', 'drop']) drop.addEventListener(name, () => drop.classList.remove('over'))
drop.addEventListener('drop', (event) => {
  event.preventDefault()
  void droppedFiles(event.dataTransfer).then(choose, (error) => say(textOf(error), 'bad'))
})
for (const name of ['files', 'folder'])
  byId(name).addEventListener('change', (event) => {
    choose(chosenFiles(event.target.files))
    event.target.value = ''
  })
byId('go').addEventListener('click', () => void upload())
byId('clear').addEventListener('click', () => choose([]))
byId('hidden').addEventListener('change', () => void showChosen())
addEventListener('beforeunload', (event) => {
  if (isBusy) event.preventDefault()
})
void showKey().catch((error) => say(textOf(error), 'bad'))
void info.catch((error) => say(textOf(error), 'bad'))
