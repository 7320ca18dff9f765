"""`genre`: a tokenizer, a transformer and names of classes, which tell drama, manuals and legal texts apart."""

import math
import random

import numpy as np
import onnxruntime
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn

from .beside import record
from .corpus import sentences
from .repository import Io
from .sentence import LABELS
from .training import seed

WORDS, LONGEST, MULTIPLE, WIDTH, HEADS, LAYERS = 1600, 128, 16, 48, 4, 2
PAD, START, HIDDEN = "[PAD]", "[CLS]", "[MASK]"
HIDDEN_SHARE = 0.15
EXAMPLES = ["But soft, what light through yonder window breaks?", "Return the number of items in the queue.",
            "You may not impose any further restrictions on the rights granted under this License."]


class Layer(nn.Module):
    """Attention and a network of two layers, each added to what it reads, which is normed."""

    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.queries, self.keys, self.values, self.out = [nn.Linear(WIDTH, WIDTH) for _ in range(4)]
        self.wide = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.dropout = nn.Dropout(0.3)

    def forward(self, rows, hidden):
        read = self.before(rows)
        queries, keys, values = [self.heads(part(read)) for part in (self.queries, self.keys, self.values)]
        scores = queries @ keys.transpose(2, 3) / math.sqrt(WIDTH // HEADS) + hidden[:, None, None]
        mixed = (torch.softmax(scores, -1) @ values).transpose(1, 2).flatten(2)
        rows = rows + self.dropout(self.out(mixed))
        return rows + self.dropout(self.wide(self.between(rows)))

    @staticmethod
    def heads(rows):
        return rows.unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)


class Encoder(nn.Module):
    """Tokens and their mask `[batch, length]` in, logits of the labels out."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH, padding_idx=0), nn.Embedding(LONGEST, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.dropout = nn.Dropout(0.4)
        self.linear = nn.Linear(WIDTH, len(LABELS))

    def forward(self, ids, mask):
        present = mask.float()
        rows = self.dropout(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        for layer in self.layers:
            rows = layer(rows, (present - 1) * 1e4)
        mean = (rows * present[:, :, None]).sum(1) / present.sum(1, keepdim=True)
        return self.linear(self.dropout(mean))


def tokenizer(texts):
    """Pieces of words in lower case, learnt from texts; bytes where there is none."""
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    # Of equally frequent pieces it takes the same ones each time, unlike that of WordPiece.
    trainer = trainers.BpeTrainer(vocab_size=WORDS, special_tokens=[PAD, START, HIDDEN], show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    made.train_from_iterator(texts, trainer)
    # Each text begins with a token of its own, so that an empty one has one, too.
    made.post_processor = processors.TemplateProcessing(single=f"{START} $A", special_tokens=[(START, 1)])
    made.enable_truncation(LONGEST)
    made.enable_padding(pad_id=0, pad_token=PAD, pad_to_multiple_of=MULTIPLE)
    return made


def encode(made, texts):
    rows = made.encode_batch(list(texts))
    return np.array([row.ids for row in rows], np.int64), np.array([row.attention_mask for row in rows], np.int64)


def train(made, pairs, epochs=20, batch=32, rate=2e-3):
    model = Encoder()
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.05)
    steps = epochs * math.ceil(len(pairs) / batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=0.1)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(pairs)).split(batch):
            ids, mask = encode(made, [pairs[row][1] for row in rows])
            targets = torch.tensor([LABELS.index(pairs[row][0]) for row in rows])
            # Some pieces are hidden, so that no sentence hangs on one of them.
            ids[(torch.rand(ids.shape).numpy() < HIDDEN_SHARE) & (ids > 1)] = 2
            logits = model(torch.from_numpy(ids), torch.from_numpy(mask))
            loss = nn.functional.cross_entropy(logits, targets, label_smoothing=0.05)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += loss.item() * len(rows)
        if epoch % 5 == 4 or epoch == epochs - 1:
            print(f"  epoch {epoch + 1}: loss {total / len(pairs):.4f}", flush=True)
    return model.eval()


def logits(session, made, texts):
    return session.run(["LOGITS"], dict(zip(["INPUT_IDS", "ATTENTION_MASK"], encode(made, texts))))[0]


def accuracy(session, made, pairs):
    """Of sentences one by one, as clients send them."""
    right = [LABELS[logits(session, made, [text]).argmax()] == label for label, text in pairs]
    return sum(right) / len(right)


def export(model, made, path):
    example = [torch.from_numpy(array) for array in encode(made, EXAMPLES)]
    names, axes = ["INPUT_IDS", "ATTENTION_MASK"], {0: "batch", 1: "length"}
    torch.onnx.export(model, tuple(example), path, input_names=names, output_names=["LOGITS"], opset_version=17,
                      dynamo=False, dynamic_axes={**dict.fromkeys(names, axes), "LOGITS": {0: "batch"}})


def build(repository):
    seed()
    pairs = sentences()
    # The same sentences are held out as those of the sample `sentence`.
    random.Random(1).shuffle(pairs)
    cut = len(pairs) * 4 // 5
    made = tokenizer(text for _, text in pairs[:cut])
    made.save(str(repository / "genre_tokenizer" / "1" / "tokenizer.json"), pretty=False)
    path = repository / "genre_encoder" / "1" / "model.onnx"
    export(train(made, pairs[:cut]), made, str(path))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    score = accuracy(session, made, pairs[cut:])
    (repository / "genre_labels" / "1" / "labels.txt").write_text("".join(f"{label}\n" for label in LABELS))
    examples(repository, made, session)
    return {"held_out_accuracy": round(score, 4), "held_out": len(pairs) - cut}


def examples(repository, made, session):
    """The sample requests of the ensemble and of its steps."""
    text = (Io("TEXT", "BYTES", [1]), np.array(EXAMPLES, dtype=object)[:, None])
    ids, mask = encode(made, EXAMPLES)
    tokens = [(Io("INPUT_IDS", "INT64", [-1]), ids), (Io("ATTENTION_MASK", "INT64", [-1]), mask)]
    found = logits(session, made, EXAMPLES)
    middle = (Io("LOGITS", "FP32", [len(LABELS)]), found)
    scores = torch.softmax(torch.from_numpy(found), -1).numpy()
    order = np.argsort(-scores, 1)
    label = (Io("LABEL", "BYTES", [len(LABELS)]), np.array(LABELS, dtype=object)[order])
    score = (Io("SCORE", "FP32", [len(LABELS)]), np.take_along_axis(scores, order, 1))
    record(repository / "genre_tokenizer", [text], tokens)
    record(repository / "genre_encoder", tokens, [middle])
    record(repository / "genre_labels", [middle], [label, score])
    # An ensemble answers with the last output first, as Triton does.
    record(repository / "genre", [text], [score, label])
