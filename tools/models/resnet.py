"""This file defines residual networks for image classification in plain PyTorch.

Source: He et al., "Deep Residual Learning for Image Recognition" (2015). The bottleneck
has its stride on the 3x3 convolution, as in torchvision, and parameters and modules
have torchvision's names.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        outplanes = planes * self.expansion
        self.conv1 = nn.Conv2d(inplanes, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(
            planes, planes, 3, stride=stride, padding=1, bias=False
        )
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, outplanes, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outplanes)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inplanes != outplanes:
            self.downsample = nn.Sequential(
                nn.Conv2d(inplanes, outplanes, 1, stride=stride, bias=False),
                nn.BatchNorm2d(outplanes),
            )

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, blocks, width, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.inplanes = width
        for index, count in enumerate(blocks):
            stage = self._stage(width * 2**index, count, 1 if index == 0 else 2)
            self.add_module(f"layer{index + 1}", stage)
        self.stages = len(blocks)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(self.inplanes, classes)

    def _stage(self, planes, blocks, stride):
        layers = []
        for index in range(blocks):
            layers.append(
                Bottleneck(self.inplanes, planes, stride if index == 0 else 1)
            )
            self.inplanes = planes * Bottleneck.expansion
        return nn.Sequential(*layers)

    def forward(self, images, labels=None):
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        for index in range(self.stages):
            x = self.get_submodule(f"layer{index + 1}")(x)
        logits = self.fc(torch.flatten(self.avgpool(x), 1))
        return logits if labels is None else F.cross_entropy(logits, labels)


def _resnet(training, batch, size, **config):
    images = torch.zeros(batch, 3, size, size)
    args = (images,)
    if training:
        args += (torch.zeros(batch, dtype=torch.int64),)
    return ResNet(**config), args


def resnet50(training):
    return _resnet(
        training, batch=32, size=224, blocks=(3, 4, 6, 3), width=64, classes=1000
    )


def resnet_tiny(training):
    return _resnet(training, batch=4, size=16, blocks=(1, 1), width=6, classes=10)
